import { Cart } from "./cart.js";

const cart = new Cart();

export function BuyButton(props: { sku: string }) {
  return <button onClick={() => cart.add(props.sku)}>Buy</button>;
}

export function CheckoutButton(props: { card: string; show: (text: string) => void }) {
  const pay = async () => props.show((await cart.checkout(props.card)).text);
  return <button onClick={pay}>Pay</button>;
}
