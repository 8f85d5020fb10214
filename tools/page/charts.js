// Charts: values over the mount's time, one below the other with one time axis, and a mark where a
// store happened.

import {bits, count, duration, html, octets, per_second, svg} from '/text.js';
import {parseDuration, parseRate, parseSize} from '/model.js';
import {curve, nearest, scaleOf, thinned} from '/plot.js';

const kPoints = 20000;
const kHeight = 52, kLeft = 150, kRight = 12;

export class Charts {
  // `live`: the present goes on, and only the last points are kept. `keys`: the page has keys for zoom.
  constructor(place, {live, keys}) {
    this.place = place;
    this.live = live;
    this.series = [];
    this.span = 10e9;   // shown, ns; Infinity: all
    this.end = null;    // null: the present
    this.moment = null; // where the cursor is if nothing is pointed at; null: at the present
    this.stores = [];
    const key = (title, name) => keys ? `${title} (${name})` : title;
    const zoom = (text, title, act) => html('button', {title, click: act}, text);
    this.range = html('span', {class: 'range'});
    place.append(html('div', {class: 'bar'},
        zoom('+', key('zoom in', '+'), () => this.zoom(0.5)), zoom('−', key('zoom out', '-'), () => this.zoom(2)),
        zoom('all', key('show all', '0'), () => this.zoom(Infinity)),
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
      keydown: event => this.#step(event, one), blur: () => { this.at = null; this.draw(); }});
    const latest = html('output', {});
    const row = html('figure', {class: 'series-row', 'data-series': name},
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

  clear() {
    for (const one of this.series) one.points.length = 0;
    this.at = this.moment = this.end = null;
  }

  // A new point of each series. The same time again replaces the last one.
  take(model) {
    this.stores = model.stores;
    for (const one of this.series) {
      const value = one.read(model);
      const points = one.points;
      if (points.length && model.now < points[points.length - 1].x) points.length = 0;  // time went back
      const last = points[points.length - 1];
      if (last && last.x === model.now) last.y = value;
      else points.push({x: model.now, y: value});
      if (this.live && points.length > kPoints) points.splice(0, kPoints / 10);
    }
  }

  zoom(factor) {
    const all = this.#extent();
    const span = Math.min(this.span, all.end - all.begin || 1);
    this.span = factor === Infinity ? Infinity : Math.max(span * factor, 1000);
    const middle = this.at ?? this.moment;
    if (middle != null) this.end = Math.min(Math.max(middle + this.span / 2, all.begin + this.span), all.end);
    if (this.end === all.end) this.end = null;
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
    this.at = one.points[Math.min(Math.max(from + way, 0), last)].x;
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
      begin = Math.min(begin, points[0].x);
      end = Math.max(end, points[points.length - 1].x);
    }
    return begin <= end ? {begin, end} : {begin: 0, end: 0};
  }

  draw() {
    const all = this.#extent();
    this.until = this.end ?? all.end;
    this.begin = this.span === Infinity ? all.begin : Math.max(this.until - this.span, all.begin);
    if (this.until <= this.begin) this.until = this.begin + 1;
    this.range.textContent = `${duration(this.begin)} to ${duration(this.until)}` +
        (this.end === null || !this.live ? '' : ', not the present') +
        (this.at == null ? '' : `; cursor at ${duration(this.at)}`);
    for (const one of this.series) this.#draw_one(one);
  }

  #draw_one(one) {
    const width = this.body.clientWidth || 600, right = width - kRight;
    // The points beside those that are shown end at the edges.
    const along = scaleOf('linear', [this.begin, this.until], kLeft, right);
    const x = t => Math.min(Math.max(along(t), kLeft), right);
    const shown = visible(one.points, this.begin, this.until);
    let top = 0;
    for (const point of shown) if (point.y > top) top = point.y;
    top ||= 1;
    const y = scaleOf('linear', [0, top], kHeight - 6, 10);
    const parts = [svg('text', {x: kLeft - 6, y: 14, class: 'axis'}, one.format(top)),
      svg('text', {x: kLeft - 6, y: kHeight - 5, class: 'axis'}, one.format(0)),
      svg('line', {x1: kLeft, x2: right, y1: y(0), y2: y(0), class: 'base'})];
    for (const store of this.stores) {
      if (store.at < this.begin || store.at > this.until) continue;
      parts.push(svg('line', {x1: x(store.at), x2: x(store.at), y1: 4, y2: y(0), class: 'store'},
          svg('title', {}, store.text)));
    }
    parts.push(svg('path', {d: curve(thinned(shown, right - kLeft), x, y, true), class: 'curve'}));
    let at = shown[shown.length - 1];
    const cursor = this.at ?? this.moment;
    if (cursor != null) {
      at = nearest(one.points, cursor);
      if (at && at.x >= this.begin && at.x <= this.until) parts.push(svg('line', {x1: x(at.x), x2: x(at.x), y1: 4, y2: y(0), class: 'cursor'}));
    }
    one.latest.textContent = at && !Number.isNaN(at.y) ? one.format(at.y) : '–';
    one.picture.setAttribute('viewBox', `0 0 ${width} ${kHeight}`);
    one.picture.setAttribute('height', kHeight);
    const store = at && this.stores.filter(known => known.at <= at.x).pop();
    one.picture.setAttribute('aria-label', `${one.name}: ${one.latest.textContent}` +
        (at ? ` at ${duration(at.x)}` : '') + (store ? `, last store ${store.text}` : ''));
    one.picture.replaceChildren(...parts);
  }

  // All points as CSV, a line for each time.
  csv() {
    const times = new Map();
    this.series.forEach((one, column) => {
      for (const {x, y} of one.points) {
        if (!times.has(x)) times.set(x, new Array(this.series.length).fill(''));
        if (!Number.isNaN(y)) times.get(x)[column] = y;
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

// The series of the whole network.
export function addTotals(charts) {
  const total = key => one => one.looks > 1 ? one.totals[key] : NaN;
  charts.add('sent by devices', total('rate'), bits, true);
  charts.add('deepest queue', total('deepest'), octets, true);
  charts.add('marks', total('marks'), per_second, true);
  charts.add('drops', total('drops'), per_second, true);
  charts.add('paused priorities', total('paused'), count, true);
}

function short(name) {
  const parts = name.split('/');
  return parts.length < 4 ? name : '…/' + parts.slice(-3).join('/');
}

// Points from begin to end, and one more at each side.
function visible(points, begin, end) {
  let from = 0, to = points.length;
  while (from + 1 < to && points[from + 1].x < begin) ++from;
  while (to - 1 > from && points[to - 2].x > end) --to;
  return points.slice(from, to);
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
