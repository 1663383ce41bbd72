class A extends mixin(B, C) {
  #hidden = 1; static made = new A(); 'quoted name'() {} 42() {} [computed()]() {}
  static { A.prototype.late = function named() { return this.#hidden; }; }
  get v() { return super.v; } set v(x) { this.x = x; } static async *many() { yield* this.other?.(); }
  field = () => this.method(); method({ a, b: [c, ...d] } = {}, ...e) { for (const x of a?.b ?? c) label: while (d) break label; }
}
function View() { this.go = () => {}; if (!(this instanceof View)) return new View; }
View.prototype = { run() {}, get size() { return 1; }, ...other, [key]: value, async *stream() {} };
View.prototype.stop = function stop() {}, View.called = View;
var list = [1, , ...more], { x = list, ...y } = list, z = /[/]\/re/g.test(`a${`b${c}`}d`) ? tag`x` : a ** b;
switch (x) { case y: let x = 1; default: x ||= z, x &&= z, x ??= z; }
try { throw new Error } catch { } finally { delete a.b, void 0, typeof c; }
a = b
++c
label: for (var i in o) for (;;) continue label
<!-- a comment of old
export const page = <Frame.Item {...props} on:click={() => go(<></>)} name="x &amp; y">text {/* none */}{list.map(x => <li key={x}>{x}</li>)}</Frame.Item>;
