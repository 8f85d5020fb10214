// Charts: values over the mount's time, one below the other with one time axis, and a mark where a
// store happened.

import {bits, count, duration, html, octets, per_second, svg} from '/text.js';
import {parseDuration, parseRate, parseSize} from '/model.js';

const kPoints = 20000;
const kHeight = 52, kLeft = 150, kRight = 12;

export class Charts {
  constructor(place) {
    this.place = place;
    this.series = [];
    this.span = 10e9;   // shown, ns; Infinity: all
    this.end = null;    // null: the present
    this.stores = [];
    const zoom = (text, title, act) => html('button', {title, click: act}, text);
    this.range = html('span', {class: 'range'});
    place.append(html('div', {class: 'bar'},
        zoom('+', 'zoom in (+)', () => this.zoom(0.5)), zoom('−', 'zoom out (-)', () => this.zoom(2)),
        zoom('all', 'show all (0)', () => this.zoom(Infinity)),
        zoom('◀', 'earlier', () => this.shift(-0.5)), zoom('▶', 'later', () => this.shift(0.5)),
        this.range));
    this.body = html('div', {class: 'series', wheel: event => this.#wheel(event)});
    place.append(this.body);
    new ResizeObserver(() => this.draw()).observe(this.body);
  }

  // `read` gives the present value, or NaN. `fixed`: the page's own series, which stays.
  add(name, read, format, fixed) {
    if (this.series.some(one => one.name === name)) return;
    const picture = svg('svg', {class: 'chart', role: 'img', tabindex: 0,
      keydown: event => this.#step(event, one)});
    const latest = html('output', {});
    const row = html('figure', {'data-series': name},
        html('figcaption', {title: name}, html('span', {}, short(name)), latest,
            fixed ? null : html('button', {title: 'no longer show ' + name,
              click: () => this.remove(name)}, '✕')),
        picture);
    const one = {name, read, format: format || count, fixed, points: [], picture, latest, row};
    picture.addEventListener('pointermove', event => this.#point(event, one));
    picture.addEventListener('pointerleave', () => { this.at = null; this.draw(); });
    this.series.push(one);
    this.body.append(row);
    this.draw();
  }

  remove(name) {
    const at = this.series.findIndex(one => one.name === name);
    if (at < 0) return;
    this.series[at].row.remove();
    this.series.splice(at, 1);
    this.removed?.(name);
  }

  // A new point of each series. The same time again replaces the last one.
  take(model) {
    this.stores = model.stores;
    for (const one of this.series) {
      const value = one.read(model);
      const points = one.points;
      if (points.length && model.now < points[points.length - 1].t) points.length = 0;  // time went back
      const last = points[points.length - 1];
      if (last && last.t === model.now) last.v = value;
      else points.push({t: model.now, v: value});
      if (points.length > kPoints) points.splice(0, kPoints / 10);
    }
  }

  zoom(factor) {
    const all = this.#extent();
    const span = Math.min(this.span, all.end - all.begin || 1);
    this.span = factor === Infinity ? Infinity : Math.max(span * factor, 1000);
    if (this.span >= all.end - all.begin) this.span = Math.max(this.span, 1000), this.end = null;
    this.draw();
  }
  shift(part) {
    const all = this.#extent();
    if (this.span === Infinity) return;
    this.end = Math.max((this.end ?? all.end) + part * this.span, all.begin + this.span);
    if (this.end >= all.end) this.end = null;
    this.draw();
  }
  #wheel(event) {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    if (event.shiftKey) this.shift(event.deltaY > 0 ? 0.1 : -0.1);
    else this.zoom(event.deltaY > 0 ? 1.25 : 0.8);
  }
  // The cursor goes from point to point by the arrows.
  #step(event, one) {
    const way = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!way || !one.points.length) return;
    event.preventDefault();
    const last = one.points.length - 1;
    const from = this.at == null ? last + (way < 0 ? 1 : 0) :
        one.points.indexOf(nearest(one.points, this.at));
    this.at = one.points[Math.min(Math.max(from + way, 0), last)].t;
    this.draw();
  }
  #point(event, one) {
    const box = one.picture.getBoundingClientRect();
    const part = (event.clientX - box.left - kLeft) / (box.width - kLeft - kRight);
    this.at = this.begin + part * (this.until - this.begin);
    this.draw();
  }

  #extent() {
    let begin = Infinity, end = -Infinity;
    for (const {points} of this.series) {
      if (!points.length) continue;
      begin = Math.min(begin, points[0].t);
      end = Math.max(end, points[points.length - 1].t);
    }
    return begin <= end ? {begin, end} : {begin: 0, end: 0};
  }

  draw() {
    const all = this.#extent();
    this.until = this.end ?? all.end;
    this.begin = this.span === Infinity ? all.begin : Math.max(this.until - this.span, all.begin);
    if (this.until <= this.begin) this.until = this.begin + 1;
    this.range.textContent = `${duration(this.begin)} to ${duration(this.until)}` +
        (this.end === null ? '' : ', not the present') +
        (this.at == null ? '' : `; cursor at ${duration(this.at)}`);
    for (const one of this.series) this.#draw_one(one);
  }

  #draw_one(one) {
    const width = this.body.clientWidth || 600, right = width - kRight;
    // The points beside those that are shown end at the edges.
    const x = t => Math.min(Math.max(kLeft + (t - this.begin) / (this.until - this.begin) *
        (right - kLeft), kLeft), right);
    const shown = visible(one.points, this.begin, this.until);
    let top = 0;
    for (const {v} of shown) if (v > top) top = v;
    top ||= 1;
    const y = v => kHeight - 6 - v / top * (kHeight - 16);
    const parts = [svg('text', {x: kLeft - 6, y: 14, class: 'axis'}, one.format(top)),
      svg('text', {x: kLeft - 6, y: kHeight - 5, class: 'axis'}, one.format(0)),
      svg('line', {x1: kLeft, x2: right, y1: y(0), y2: y(0), class: 'base'})];
    for (const store of this.stores) {
      if (store.at < this.begin || store.at > this.until) continue;
      parts.push(svg('line', {x1: x(store.at), x2: x(store.at), y1: 4, y2: y(0), class: 'store'},
          svg('title', {}, store.text)));
    }
    parts.push(svg('path', {d: path(thinned(shown, right - kLeft), x, y), class: 'curve'}));
    let at = shown[shown.length - 1];
    if (this.at != null) {
      at = nearest(shown, this.at);
      if (at) parts.push(svg('line', {x1: x(at.t), x2: x(at.t), y1: 4, y2: y(0), class: 'cursor'}));
    }
    one.latest.textContent = at && !Number.isNaN(at.v) ? one.format(at.v) : '–';
    one.picture.setAttribute('viewBox', `0 0 ${width} ${kHeight}`);
    one.picture.setAttribute('height', kHeight);
    const store = at && this.stores.filter(known => known.at <= at.t).pop();
    one.picture.setAttribute('aria-label', `${one.name}: ${one.latest.textContent}` +
        (at ? ` at ${duration(at.t)}` : '') + (store ? `, last store ${store.text}` : ''));
    one.picture.replaceChildren(...parts);
  }

  // All points as CSV, a line for each time.
  csv() {
    const times = new Map();
    this.series.forEach((one, column) => {
      for (const {t, v} of one.points) {
        if (!times.has(t)) times.set(t, new Array(this.series.length).fill(''));
        if (!Number.isNaN(v)) times.get(t)[column] = v;
      }
    });
    const quoted = text => /[",\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
    const lines = [['now_ns', ...this.series.map(one => one.name)].map(quoted).join(',')];
    for (const t of [...times.keys()].sort((a, b) => a - b)) {
      lines.push([t, ...times.get(t)].join(','));
    }
    return lines.join('\n') + '\n';
  }
}

function short(name) {
  const parts = name.split('/');
  return parts.length < 4 ? name : '…/' + parts.slice(-3).join('/');
}

// Points from begin to end, and one more at each side.
function visible(points, begin, end) {
  let from = 0, to = points.length;
  while (from + 1 < to && points[from + 1].t < begin) ++from;
  while (to - 1 > from && points[to - 2].t > end) --to;
  return points.slice(from, to);
}

// Least and greatest point of each pixel column.
function thinned(points, width) {
  if (points.length <= 2 * width) return points;
  const step = points.length / width, out = [];
  for (let i = 0; i < width; ++i) {
    const part = points.slice(Math.floor(i * step), Math.floor((i + 1) * step));
    let low = part[0], high = part[0];
    for (const point of part) {
      if (point.v < low.v) low = point;
      if (point.v > high.v) high = point;
    }
    out.push(...(low.t < high.t ? [low, high] : low === high ? [low] : [high, low]));
  }
  return out;
}

// Steps: a value stays until the next look.
function path(points, x, y) {
  let d = '', gap = true, last = 0;
  for (const {t, v} of points) {
    if (Number.isNaN(v)) {
      gap = true;
      continue;
    }
    d += gap ? `M${x(t).toFixed(1)},${y(v).toFixed(1)}` :
        `H${x(t).toFixed(1)}` + (v === last ? '' : `V${y(v).toFixed(1)}`);
    gap = false;
    last = v;
  }
  return d;
}

function nearest(points, t) {
  let best = null;
  for (const point of points) {
    if (!best || Math.abs(point.t - t) < Math.abs(best.t - t)) best = point;
  }
  return best;
}

// The number in a file's text, in the unit of format_of(); NaN if it is none.
export function number_of(path, text) {
  if (text === undefined) return NaN;
  if (/^-?\d+(\.\d+)?$/.test(text)) return Number(text);
  const format = format_of(path);
  if (format === octets && /^[\d.]+[KMGT]$/.test(text)) return parseSize(text);
  if (format === bits && /^[\d.]+[kMGT]$/.test(text)) return parseRate(text);
  return format === duration ? parseDuration(text) : NaN;
}

// The unit of a file, from its name.
export function format_of(path) {
  if (/(^|\/)(bytes|used|size|peak|kmin|kmax|buffer|headroom|threshold)$|_bytes$|\/window$/.test(path)) return octets;
  if (/_ns$|\/delay$/.test(path)) return duration;
  if (/\/rate$|goodput_bps$/.test(path)) return bits;
  if (/_per_second$/.test(path)) return per_second;
  return count;
}
