#!/usr/bin/env node
'use strict';
import first, { second as other, default as third } from './first.js';
import * as space from "./space.mjs";
import './effects.js';
export { second, third as "a string name" } from './second.js';
export * from './all.js';
export * as names from './names.js';
export default function () { return first(other, third, space.deep.call()); }
const { f: g, h = 1, ...rest } = require('./common');
const whole = require("./whole"), called = require('./factory')(rest);
module.exports = function top() { return g(h, whole, called); };
module.exports.more = class More {};
exports.f = exports.g = () => import('./late.js').then(({ a }) => a());
exports = { lost: 1 };
Object.assign(module.exports, { ...whole, x() {} });
Object.defineProperty(exports, '__esModule', { value: true });
const late = async () => { const { f: inner } = await import(`./late.js`); inner(); };
