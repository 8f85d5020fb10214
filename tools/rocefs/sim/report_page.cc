#include "tools/rocefs/sim/report_page.h"

namespace rocefs {

// Colours of curves differ in lightness too, and each variant has its own dashes and marks, for
// people who do not see the hues.
const char* const kReportStyle = R"css(
:root { color-scheme: light dark;
  --page: #ffffff; --text: #1b1f24; --faint: #5b6470; --line: #d5dae0; --panel: #f6f8fa;
  --warn: #8a4b00; --warn-page: #fff4e0;
  --c0: #2f66a8; --c1: #c8402f; --c2: #1d7f3c; --c3: #96358f; --c4: #a36a00; --c5: #00809c;
  --c6: #5a5a5a; --c7: #c2347b; }
@media (prefers-color-scheme: dark) { :root {
  --page: #14171b; --text: #e4e8ec; --faint: #9aa4b0; --line: #353c45; --panel: #1c2127;
  --warn: #ffc66d; --warn-page: #33260d;
  --c0: #7fb2ee; --c1: #ff8d7c; --c2: #71d28c; --c3: #dd8bd6; --c4: #efc15a; --c5: #5cc9e4;
  --c6: #bdbdbd; --c7: #ff8fc0; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 24px 20px 60px; max-width: 1120px; background: var(--page);
  color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 24px; line-height: 1.25; margin: 0 0 4px; }
h2 { font-size: 18px; margin: 36px 0 8px; padding-top: 12px; border-top: 1px solid var(--line); }
p { margin: 6px 0; }
.faint { color: var(--faint); font-size: 13px; }
.warn { background: var(--warn-page); color: var(--warn); padding: 8px 12px; border-radius: 6px; }
.warn p { margin: 2px 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums;
  margin: 8px 0; }
caption { text-align: left; color: var(--faint); padding: 4px 0; }
th, td { padding: 4px 10px; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
td small { color: var(--faint); }
pre { background: var(--panel); padding: 12px; overflow-x: auto; font-size: 12.5px;
  line-height: 1.45; border-radius: 6px; }
.charts { display: grid; gap: 20px; grid-template-columns: repeat(auto-fit, minmax(min(460px, 100%), 1fr)); }
figure { margin: 0; position: relative; }
figcaption { font-weight: 600; font-size: 14px; }
svg { width: 100%; height: auto; display: block; }
svg.zooms { touch-action: none; cursor: crosshair; }
svg text { fill: var(--faint); font-size: 12px; }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .axis { stroke: var(--faint); stroke-width: 1; }
svg .curve { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
svg .selection { fill: var(--c0); opacity: 0.18; }
svg .pointer { stroke: var(--faint); stroke-dasharray: 2 3; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; margin: 4px 0 8px; font-size: 13px; }
.legend label { display: inline-flex; align-items: center; gap: 6px; cursor: pointer; }
.legend svg { width: 34px; height: 12px; flex: none; }
.readout { font-size: 12px; min-height: 1.6em; color: var(--faint);
  font-variant-numeric: tabular-nums; }
button { font: inherit; font-size: 13px; color: inherit; background: var(--panel);
  border: 1px solid var(--line); border-radius: 6px; padding: 3px 10px; cursor: pointer; }
button:hover { border-color: var(--faint); }
)css";

const char* const kReportScript = R"js(
'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const dashes = ['', '7 3', '2 3', '9 3 2 3', '12 4', '4 2', '1 2', '6 2 1 2'];
const marks = ['circle', 'square', 'triangle', 'diamond'];
const color = i => `var(--c${i % 8})`;
const hidden = new Set();   // variants that are not shown
let zoom = null;            // [from, to] in the unit of the time axis
const charts = [];

function el(name, attributes, parent, text) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  if (parent) parent.appendChild(node);
  return node;
}
function html(name, attributes, parent, text) {
  const node = document.createElement(name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  if (parent) parent.appendChild(node);
  return node;
}
function short(value) {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return value.toExponential(2).replace(/\.?0+e/, 'e');
  return String(Number(value.toPrecision(4)));
}
function sizeText(bytes) {
  for (const [unit, scale] of [['G', 2 ** 30], ['M', 2 ** 20], ['K', 1024]]) {
    if (bytes >= scale) return short(bytes / scale) + unit;
  }
  return String(bytes);
}
function linearTicks(from, to, wanted) {
  const raw = (to - from) / wanted, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(x => x * power).find(x => x >= raw * 0.999);
  const ticks = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9; ++i) ticks.push(i * step);
  return ticks;
}
function logTicks(from, to, factors) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(from)); power <= Math.log10(to) + 1; ++power) {
    for (const factor of factors) {
      const tick = factor * 10 ** power;
      if (tick >= from * 0.999 && tick <= to * 1.001) ticks.push(tick);
    }
  }
  return ticks;
}
function ticksOf(scale, from, to, wanted) {
  if (scale !== 'log') return linearTicks(from, to, wanted);
  const decades = Math.log10(to / from);
  if (decades < 0.7) return linearTicks(from, to, wanted);
  return logTicks(from, to, decades > 2.5 ? [1] : [1, 2, 5]);
}
function mark(svg, shape, x, y, stroke) {
  const at = {fill: stroke, class: 'mark'};
  if (shape === 'circle') return el('circle', {cx: x, cy: y, r: 3.4, ...at}, svg);
  if (shape === 'square') return el('rect', {x: x - 3, y: y - 3, width: 6, height: 6, ...at}, svg);
  const d = shape === 'triangle' ? `M${x} ${y - 4}L${x + 4} ${y + 3}L${x - 4} ${y + 3}Z`
                                 : `M${x} ${y - 4.4}L${x + 4.4} ${y}L${x} ${y + 4.4}L${x - 4.4} ${y}Z`;
  return el('path', {d, ...at}, svg);
}

// A chart of curves: {name, variant, dash, marks, step, points: [[x, y, half width of interval]]}.
class Chart {
  constructor(parent, options) {
    this.options = options;
    this.figure = html('figure', {}, parent);
    html('figcaption', {}, this.figure, options.title);
    this.svg = el('svg', {viewBox: '0 0 540 300', role: 'img', 'aria-label': options.title}, this.figure);
    this.readout = html('div', {class: 'readout'}, this.figure);
    this.box = {left: 62, right: 528, top: 12, bottom: 252};
    this.svg.addEventListener('pointermove', event => this.pointed(event));
    this.svg.addEventListener('pointerleave', () => this.left());
    if (options.zooms) this.makeZoom();
    charts.push(this);
    this.draw();
  }
  shown() { return this.options.curves.filter(curve => !hidden.has(curve.variant)); }
  range() {
    // An interval that reaches 0 has no place on a logarithmic axis.
    const lower = (py, half) => yscale === 'log' ? Math.max(py - (half || 0), py / 10) : py - (half || 0);
    const {xscale, yscale, zooms, xrange} = this.options;
    let x = xrange || (zooms && zoom), low = Infinity, high = -Infinity, from = Infinity, to = -Infinity;
    for (const curve of this.shown()) {
      for (const [px, py, half] of curve.points) {
        if (py === null || (x && (px < x[0] || px > x[1]))) continue;
        from = Math.min(from, px); to = Math.max(to, px);
        low = Math.min(low, lower(py, half)); high = Math.max(high, py + (half || 0));
      }
    }
    if (from === Infinity) { from = low = 0; to = high = 1; }
    if (!x) x = zooms ? [0, data.longest] : [from, to];
    if (x[0] === x[1]) x = xscale === 'log' ? [x[0] / 1.5, x[1] * 1.5] : [x[0] - 0.5, x[1] + 0.5];
    let y = this.options.yrange;
    if (!y && yscale === 'log') y = [Math.min(1, low), Math.max(high * 1.15, low * 1.5)];
    if (!y) y = [Math.min(0, low), high > 0 ? high * 1.06 : 1];
    return {x, y};
  }
  draw() {
    const {left, right, top, bottom} = this.box, {x, y} = this.range(), {options, svg} = this;
    const place = (scale, [from, to], a, b) => scale === 'log'
      ? value => a + (b - a) * Math.log(Math.max(value, from * 1e-9) / from) / Math.log(to / from)
      : value => a + (b - a) * (value - from) / (to - from);
    this.x = place(options.xscale, x, left, right);
    this.y = place(options.yscale, y, bottom, top);
    this.span = x;
    svg.replaceChildren();
    for (const tick of ticksOf(options.yscale, y[0], y[1], 5)) {
      el('line', {class: 'grid', x1: left, x2: right, y1: this.y(tick), y2: this.y(tick)}, svg);
      el('text', {x: left - 7, y: this.y(tick) + 4, 'text-anchor': 'end'}, svg, short(tick));
    }
    const xticks = options.xticks || ticksOf(options.xscale, x[0], x[1], 6);
    const every = Math.ceil(xticks.length / 9);
    xticks.forEach((tick, i) => {
      el('line', {class: 'grid', x1: this.x(tick), x2: this.x(tick), y1: top, y2: bottom}, svg);
      if (i % every) return;
      el('text', {x: this.x(tick), y: bottom + 17, 'text-anchor': 'middle'}, svg, (options.xtext || short)(tick));
    });
    el('line', {class: 'axis', x1: left, x2: right, y1: bottom, y2: bottom}, svg);
    el('text', {x: (left + right) / 2, y: bottom + 38, 'text-anchor': 'middle'}, svg, options.xlabel);
    el('text', {transform: `translate(13 ${(top + bottom) / 2}) rotate(-90)`, 'text-anchor': 'middle'}, svg, options.ylabel);
    const clip = `clip${charts.indexOf(this) < 0 ? charts.length : charts.indexOf(this)}`;
    el('rect', {x: left, y: top - 5, width: right - left + 5, height: bottom - top + 6}, el('clipPath', {id: clip}, svg));
    const area = el('g', {'clip-path': `url(#${clip})`}, svg);
    for (const curve of this.shown()) this.drawCurve(curve, area);
    this.pointer = el('line', {class: 'pointer', y1: top, y2: bottom, visibility: 'hidden'}, svg);
    this.selection = el('rect', {class: 'selection', y: top, height: bottom - top, visibility: 'hidden'}, svg);
  }
  drawCurve(curve, area) {
    const index = data.variants.indexOf(curve.variant), stroke = color(index);
    let d = '', broken = true, last = 0;
    for (const [px, py, half] of curve.points) {
      if (py === null) { broken = true; continue; }
      const x = this.x(px).toFixed(1), y = this.y(py).toFixed(1);
      d += broken ? `M${x} ${y}` : curve.step ? `H${x}V${y}` : `L${x} ${y}`;
      broken = false;
      last = x;
      if (half) el('line', {x1: x, x2: x, y1: this.y(this.options.yscale === 'log' ? Math.max(py - half, py / 10) : py - half), y2: this.y(py + half), style: `stroke:${stroke}`}, area);
      if (curve.marks) mark(area, marks[index % marks.length], Number(x), Number(y), stroke);
    }
    el('path', {class: 'curve', d, 'data-variant': curve.variant, 'data-name': curve.name,
      'stroke-dasharray': curve.dash, style: `stroke:${stroke}`}, area);
  }
  valueAt(event) {
    const box = this.svg.getBoundingClientRect(), {left, right} = this.box;
    const pixel = (event.clientX - box.left) * 540 / box.width;
    const part = Math.min(1, Math.max(0, (pixel - left) / (right - left))), [from, to] = this.span;
    return this.options.xscale === 'log' ? from * (to / from) ** part : from + (to - from) * part;
  }
  pointed(event) {
    const x = this.valueAt(event);
    const parts = this.shown().filter(curve => curve.points.length).map(curve => {
      let best = null;
      for (const point of curve.points) {
        if (curve.step ? point[0] <= x : !best || Math.abs(point[0] - x) < Math.abs(best[0] - x)) best = point;
      }
      return `${curve.name}: ${best && best[1] !== null ? short(best[1]) : '–'}`;
    });
    this.readout.textContent = `${(this.options.xtext || short)(x)} → ${parts.join(', ')}`;
    this.pointer.setAttribute('x1', this.x(x));
    this.pointer.setAttribute('x2', this.x(x));
    this.pointer.setAttribute('visibility', 'visible');
    if (this.from === undefined) return;
    const a = this.x(Math.min(this.from, x)), b = this.x(Math.max(this.from, x));
    for (const [key, value] of [['x', a], ['width', b - a], ['visibility', 'visible']]) this.selection.setAttribute(key, value);
  }
  left() {
    this.readout.textContent = '';
    this.pointer.setAttribute('visibility', 'hidden');
  }
  makeZoom() {
    this.svg.classList.add('zooms');
    this.svg.addEventListener('pointerdown', event => {
      this.from = this.valueAt(event);
      this.svg.setPointerCapture(event.pointerId);
    });
    this.svg.addEventListener('pointerup', event => {
      const to = this.valueAt(event), from = this.from;
      this.from = undefined;
      this.selection.setAttribute('visibility', 'hidden');
      if (Math.abs(this.x(to) - this.x(from)) > 6) setZoom([Math.min(from, to), Math.max(from, to)]);
    });
    this.svg.addEventListener('dblclick', () => setZoom(null));
  }
}
function redraw() { for (const chart of charts) chart.draw(); }
function setZoom(range) {
  zoom = range;
  for (const chart of charts) if (chart.options.zooms) chart.draw();
}
function scaleZoom(factor) {
  const [from, to] = zoom || [0, data.longest], middle = (from + to) / 2, half = (to - from) / 2 * factor;
  const range = [Math.max(0, middle - half), Math.min(data.longest, middle + half)];
  setZoom(range[1] - range[0] >= data.longest ? null : range);
}
function legend() {
  const parent = document.getElementById('legend');
  data.variants.forEach((variant, i) => {
    const label = html('label', {}, parent), box = html('input', {type: 'checkbox', checked: ''}, label);
    const svg = el('svg', {viewBox: '0 0 34 12', 'aria-hidden': 'true'}, label);
    el('line', {x1: 0, x2: 34, y1: 6, y2: 6, style: `stroke:${color(i)}`, 'stroke-width': 2.4,
      'stroke-dasharray': dashes[i % 8]}, svg);
    mark(svg, marks[i % marks.length], 17, 6, color(i));
    label.append(variant || 'all flows');
    box.addEventListener('change', () => {
      if (box.checked) hidden.delete(variant); else hidden.add(variant);
      redraw();
    });
  });
}
)js"
                                  R"js(
function drawCdf() {
  const curves = data.cdf.map(({variant, points}) => ({name: variant || 'slowdown', variant, step: true,
    dash: dashes[data.variants.indexOf(variant) % 8], points: [[points[0][0], 0], ...points]}));
  if (!curves.length) return;
  const highest = Math.max(...curves.map(curve => curve.points.at(-1)[0]));
  const lowest = Math.min(...curves.map(curve => curve.points[0][0]));
  new Chart(document.getElementById('flows'), {title: 'Slowdown of flows, CDF', curves, xscale: 'log', yrange: [0, 1],
    xrange: [Math.min(1, lowest), Math.max(highest * 1.05, 1.5)], xlabel: 'Slowdown (FCT / ideal FCT)', ylabel: 'Share of flows'});
}
function drawSizes() {
  for (const [figure, title] of [['p50', 'Median slowdown by flow size'], ['p99', '99th percentile of slowdown by flow size']]) {
    const sizes = [...new Set(data.sizes.flatMap(one => one.rows.map(row => row.size)))].sort((a, b) => a - b);
    const curves = data.sizes.map(({variant, rows}) => ({name: variant || figure, variant, marks: true,
      dash: dashes[data.variants.indexOf(variant) % 8], points: rows.map(row => [row.size, row[figure], row[figure + '_ci']])}));
    if (!sizes.length) return;
    new Chart(document.getElementById('flows'), {title, curves, xscale: 'log', yscale: 'log', xticks: sizes, xtext: sizeText,
      xrange: [sizes[0] / 1.5, sizes.at(-1) * 1.5], xlabel: 'Flow size up to (octets)', ylabel: 'Slowdown'});
  }
}
function drawSeries() {
  const parent = document.getElementById('series');
  for (const panel of data.panels) {
    const curves = [];
    for (const {variant, samples} of data.series) {
      panel.samples.forEach((name, i) => curves.push({variant, points: samples[name],
        name: [variant, panel.samples.length > 1 || !variant ? name : ''].filter(Boolean).join(' '),
        dash: panel.samples.length > 1 ? dashes[i % 8] : dashes[data.variants.indexOf(variant) % 8]}));
    }
    new Chart(parent, {title: panel.axis, curves, zooms: true, xlabel: `Time (${data.unit})`, ylabel: panel.axis});
  }
}
legend();
drawCdf();
drawSizes();
drawSeries();
for (const [id, action] of [['zoom-in', () => scaleZoom(0.5)], ['zoom-out', () => scaleZoom(2)], ['zoom-all', () => setZoom(null)]]) {
  const button = document.getElementById(id);
  if (button) button.addEventListener('click', action);
}
)js";

}  // namespace rocefs
