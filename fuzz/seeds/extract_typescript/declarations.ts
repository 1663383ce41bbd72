/// <reference types="node" />
import type { A, B as C } from './types';
import { type D, value } from "./mixed.js";
import old = require('old');
import Inner = Outer.Deep.Inner;
export = whole;
export as namespace Global;
export type { A } from './types';
export function f(a: number): string;
export function f<T extends A & Partial<C> = D>(this: Window, a?: T, ...rest: [x: T, y?: string]): asserts a is T { return a!; }
export interface Box<in out T, K extends keyof T = keyof T> extends Base<T>, ns.Other { readonly [k: string]: T[K]; (x: T): void; new (x: T): Box<T>; get(): this; set v(x: T); method?<U>(u: U): typeof value }
declare module 'other' { export default function (x: A): void; interface Box { more: C } }
declare module "./types" { interface A { added(): void } }
declare global { interface Window { app: A } function plain(): void; var v: D; }
namespace N.M { export const x = 1; export namespace P { export type Q = `a${string}`; } }
export const enum E { A = 1 << 2, 'B', C = A | B }
export abstract class Z<T> extends Mixin(Base)<T> implements Box<T>, A {
  private readonly x!: T; static accessor y = 1; declare z: string; override async m?(): Promise<void>; abstract n(): A;
  constructor(private a: A, public readonly b = new Map<string, C>(), @inject(Token) protected c?: D) { super(); }
  @decorated() get g(): A['b']['c'] { return (this.a as unknown as C) satisfies D; } [Symbol.iterator]<T>() {}
  static { this.y = 2; }
}
type Fn = new (...args: any[]) => infer_; type Cond<T> = T extends (infer U extends A)[] ? U : T extends { a: infer V } ? V : never;
type Mapped = { -readonly [K in keyof A as `get${Capitalize<K>}`]-?: A[K] }; type Q = unique symbol; type T3 = typeof import('./x', { with: { 'resolution-mode': 'import' } });
export default class<T> { x = <T>(y: T) => y; z = f<A>(1)!.b?.c!(2); }
let { a: { b }, c = 1 }: { a: { b: A }; c?: number } = o, g = async <T,>(x: T): Promise<T> => await x;
using resource = open(); for await (const x of y as A[]) { if (x instanceof Z || isA(x)) x.n(); }
let u: A | (() => B) | [first: A, ...rest: B[]] | { a(): A } | abstract_ = <A>b;
