import { postOrder, type Receipt } from "./api.js";

export interface Line {
  sku: string;
  count: number;
}

export class Cart {
  private lines: Line[] = [];

  add(sku: string, count = 1): void {
    const line = this.lines.find((line) => line.sku === sku);
    if (line) {
      line.count += count;
    } else {
      this.lines.push({ sku, count });
    }
  }

  checkout(card: string): Promise<Receipt> {
    return postOrder({ lines: this.lines, card });
  }
}
