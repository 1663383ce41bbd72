import type { Line } from "./cart.js";

export interface Order {
  lines: Line[];
  card: string;
}

export interface Receipt {
  text: string;
}

export async function postOrder(order: Order): Promise<Receipt> {
  const response = await fetch("/orders", { method: "POST", body: JSON.stringify(order) });
  if (!response.ok) {
    throw new Error(`the order was refused: ${response.status}`);
  }
  return (await response.json()) as Receipt;
}
