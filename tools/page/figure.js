// Figure: curves over each other on two axes with ticks, which can be pointed at and zoomed.

import {html, svg} from '/text.js';
import {curve as pathOf, scaleOf, ticksOf} from '/plot.js';

const kWidth = 540, kHeight = 300;
const kBox = {left: 62, right: 528, top: 12, bottom: 252};
const kMarks = ['circle', 'square', 'triangle', 'diamond'];
const kDashes = ['', '7 3', '2 3', '9 3 2 3', '12 4', '4 2', '1 2', '6 2 1 2'];
export const colorOf = i => `var(--c${i % 8})`;
export const dashOf = i => kDashes[i % kDashes.length];

// Four significant digits.
export function short(value) {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return value.toExponential(2).replace(/\.?0+e/, 'e');
  return String(Number(value.toPrecision(4)));
}

export function markOf(i, x, y) {
  const at = {fill: colorOf(i), class: 'mark'}, shape = kMarks[i % kMarks.length];
  if (shape === 'circle') return svg('circle', {cx: x, cy: y, r: 3.4, ...at});
  if (shape === 'square') return svg('rect', {x: x - 3, y: y - 3, width: 6, height: 6, ...at});
  const d = shape === 'triangle' ? `M${x} ${y - 4}L${x + 4} ${y + 3}L${x - 4} ${y + 3}Z` :
      `M${x} ${y - 4.4}L${x + 4.4} ${y}L${x} ${y + 4.4}L${x - 4.4} ${y}Z`;
  return svg('path', {d, ...at});
}

let figures = 0;

// A curve: {name, variant, index, dash, marks, step, points}; points may have half the width of an
// interval. `index` of the variant decides colour and marks.
export class Figure {
  // `options`: title, curves, xlabel, ylabel, and as wanted xscale, yscale, xrange, yrange, xticks, xtext,
  // zooms; `shared`: {hidden: variants that are not shown, zoom: [from, to] or null, longest, setZoom}.
  constructor(parent, options, shared) {
    this.options = options;
    this.shared = shared;
    this.clip = `clip${figures++}`;
    this.svg = svg('svg', {class: options.zooms ? 'plot zooms' : 'plot',
      viewBox: `0 0 ${kWidth} ${kHeight}`, role: 'img', 'aria-label': options.title,
      pointermove: event => this.#pointed(event), pointerleave: () => this.#left()});
    this.readout = html('div', {class: 'readout'});
    parent.append(html('figure', {class: 'figure'}, html('figcaption', {}, options.title), this.svg,
        this.readout));
    if (options.zooms) this.#make_zoom();
    this.draw();
  }

  #shown() { return this.options.curves.filter(one => !this.shared.hidden.has(one.variant)); }

  #range() {
    const {xscale, yscale, zooms, xrange} = this.options;
    let x = xrange || (zooms && this.shared.zoom);
    let low = Infinity, high = -Infinity, from = Infinity, to = -Infinity;
    for (const one of this.#shown()) {
      for (const point of one.points) {
        if (Number.isNaN(point.y) || (x && (point.x < x[0] || point.x > x[1]))) continue;
        from = Math.min(from, point.x);
        to = Math.max(to, point.x);
        low = Math.min(low, this.#lower(point));
        high = Math.max(high, point.y + (point.half || 0));
      }
    }
    if (from === Infinity) {
      from = low = 0;
      to = high = 1;
    }
    if (!x) x = zooms ? [0, this.shared.longest] : [from, to];
    if (x[0] === x[1]) x = xscale === 'log' ? [x[0] / 1.5, x[1] * 1.5] : [x[0] - 0.5, x[1] + 0.5];
    let y = this.options.yrange;
    if (!y && yscale === 'log') y = [Math.min(1, low), Math.max(high * 1.15, low * 1.5)];
    if (!y) y = [Math.min(0, low), high > 0 ? high * 1.06 : 1];
    return {x, y};
  }
  // Lower end of a point's interval. One that reaches 0 has no place on a logarithmic axis.
  #lower({y, half}) {
    const low = y - (half || 0);
    return this.options.yscale === 'log' ? Math.max(low, y / 10) : low;
  }

  draw() {
    const {left, right, top, bottom} = kBox, {x, y} = this.#range(), {options} = this;
    this.x = scaleOf(options.xscale, x, left, right);
    this.y = scaleOf(options.yscale, y, bottom, top);
    this.span = x;
    const grid = at => svg('line', {class: 'grid', x1: left, x2: right, y1: top, y2: bottom, ...at});
    const middle = {'text-anchor': 'middle'};
    const parts = [];
    for (const tick of ticksOf(options.yscale, y[0], y[1], 5)) {
      const at = this.y(tick);
      parts.push(grid({y1: at, y2: at}),
          svg('text', {x: left - 7, y: at + 4, 'text-anchor': 'end'}, short(tick)));
    }
    const xticks = options.xticks || ticksOf(options.xscale, x[0], x[1], 6);
    const every = Math.ceil(xticks.length / 9);
    xticks.forEach((tick, i) => {
      const at = this.x(tick);
      parts.push(grid({x1: at, x2: at}));
      if (i % every) return;
      parts.push(svg('text', {x: at, y: bottom + 17, ...middle}, (options.xtext || short)(tick)));
    });
    this.pointer = svg('line', {class: 'pointer', y1: top, y2: bottom, visibility: 'hidden'});
    this.selection = svg('rect', {class: 'selection', y: top, height: bottom - top, visibility: 'hidden'});
    parts.push(svg('line', {class: 'axis', x1: left, x2: right, y1: bottom, y2: bottom}),
        svg('text', {x: (left + right) / 2, y: bottom + 38, ...middle}, options.xlabel),
        svg('text', {transform: `translate(13 ${(top + bottom) / 2}) rotate(-90)`, ...middle},
            options.ylabel),
        svg('clipPath', {id: this.clip}, svg('rect',
            {x: left, y: top - 5, width: right - left + 5, height: bottom - top + 6})),
        svg('g', {'clip-path': `url(#${this.clip})`}, this.#shown().map(one => this.#curve(one))),
        this.pointer, this.selection);
    this.svg.replaceChildren(...parts);
  }

  #curve(one) {
    const style = `stroke:${colorOf(one.index)}`;
    const known = one.points.filter(point => !Number.isNaN(point.y));
    return [
      ...known.filter(point => point.half).map(point => {
        const x = this.x(point.x).toFixed(1);
        return svg('line', {x1: x, x2: x, y1: this.y(this.#lower(point)), y2: this.y(point.y + point.half), style});
      }),
      ...(one.marks ? known.map(point => markOf(one.index, this.x(point.x), this.y(point.y))) : []),
      svg('path', {class: 'curve', d: pathOf(one.points, this.x, this.y, one.step), style,
        'data-variant': one.variant, 'data-name': one.name, 'stroke-dasharray': one.dash})];
  }

  #value_at(event) {
    const box = this.svg.getBoundingClientRect(), {left, right} = kBox;
    const pixel = (event.clientX - box.left) * kWidth / box.width;
    const part = Math.min(1, Math.max(0, (pixel - left) / (right - left))), [from, to] = this.span;
    return this.options.xscale === 'log' ? from * (to / from) ** part : from + (to - from) * part;
  }

  #pointed(event) {
    const x = this.#value_at(event);
    const parts = this.#shown().filter(one => one.points.length).map(one => {
      let best = null;
      for (const point of one.points) {
        if (one.step ? point.x <= x : !best || Math.abs(point.x - x) < Math.abs(best.x - x)) best = point;
      }
      return `${one.name}: ${best && !Number.isNaN(best.y) ? short(best.y) : '–'}`;
    });
    this.readout.textContent = `${(this.options.xtext || short)(x)} → ${parts.join(', ')}`;
    const set = (node, values) => {
      for (const [key, value] of Object.entries(values)) node.setAttribute(key, value);
    };
    set(this.pointer, {x1: this.x(x), x2: this.x(x), visibility: 'visible'});
    if (this.from === undefined) return;
    const a = this.x(Math.min(this.from, x)), b = this.x(Math.max(this.from, x));
    set(this.selection, {x: a, width: b - a, visibility: 'visible'});
  }
  #left() {
    this.readout.textContent = '';
    this.pointer.setAttribute('visibility', 'hidden');
  }

  // A zoom is that of all figures over time.
  #make_zoom() {
    this.svg.addEventListener('pointerdown', event => {
      this.from = this.#value_at(event);
      this.svg.setPointerCapture(event.pointerId);
    });
    this.svg.addEventListener('pointerup', event => {
      const to = this.#value_at(event), from = this.from;
      this.from = undefined;
      this.selection.setAttribute('visibility', 'hidden');
      if (Math.abs(this.x(to) - this.x(from)) > 6) {
        this.shared.setZoom([Math.min(from, to), Math.max(from, to)]);
      }
    });
    this.svg.addEventListener('dblclick', () => this.shared.setZoom(null));
  }
}
