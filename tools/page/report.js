// Report: the curves and the network of report.html, from the data in it.

import {html, svg} from '/text.js';
import {colorOf, dashOf, Figure, markOf, short} from '/figure.js';
import {Recorded} from '/recorded.js';

const find = id => document.getElementById(id);
const data = JSON.parse(find('data').textContent);
const figures = [];
const shared = {
  hidden: new Set(),  // variants
  zoom: null,         // [from, to] in the unit of the time axis
  longest: data.longest,
  setZoom: range => {
    shared.zoom = range;
    for (const figure of figures) if (figure.options.zooms) figure.draw();
  },
};
const figure = (parent, options) => figures.push(new Figure(parent, options, shared));
const indexOf = variant => data.variants.indexOf(variant);
// The data have [x, y, half], with null where nothing is known.
const pointsOf = list => list.map(([x, y, half]) => ({x, y: y === null ? NaN : y, half}));

function sizeText(bytes) {
  for (const [unit, scale] of [['G', 2 ** 30], ['M', 2 ** 20], ['K', 1024]]) {
    if (bytes >= scale) return short(bytes / scale) + unit;
  }
  return String(bytes);
}

function scaleZoom(factor) {
  const [from, to] = shared.zoom || [0, data.longest];
  const middle = (from + to) / 2, half = (to - from) / 2 * factor;
  const range = [Math.max(0, middle - half), Math.min(data.longest, middle + half)];
  shared.setZoom(range[1] - range[0] >= data.longest ? null : range);
}

function drawLegend() {
  find('legend').append(...data.variants.map((variant, i) => {
    const box = html('input', {type: 'checkbox', checked: true, change: () => {
      if (box.checked) shared.hidden.delete(variant);
      else shared.hidden.add(variant);
      for (const one of figures) one.draw();
    }});
    return html('label', {}, box, svg('svg', {viewBox: '0 0 34 12', 'aria-hidden': 'true'},
        svg('line', {x1: 0, x2: 34, y1: 6, y2: 6, style: `stroke:${colorOf(i)}`, 'stroke-width': 2.4,
          'stroke-dasharray': dashOf(i)}), markOf(i, 17, 6)), variant || 'all flows');
  }));
}

function drawCdf() {
  const curves = data.cdf.map(({variant, points}) => ({name: variant || 'slowdown', variant, step: true,
    index: indexOf(variant), dash: dashOf(indexOf(variant)), points: pointsOf([[points[0][0], 0], ...points])}));
  if (!curves.length) return;
  const highest = Math.max(...curves.map(one => one.points.at(-1).x));
  const lowest = Math.min(...curves.map(one => one.points[0].x));
  figure(find('flows'), {title: 'Slowdown of flows, CDF', curves, xscale: 'log', yrange: [0, 1],
    xrange: [Math.min(1, lowest), Math.max(highest * 1.05, 1.5)], xlabel: 'Slowdown (FCT / ideal FCT)',
    ylabel: 'Share of flows'});
}

function drawSizes() {
  const sizes = [...new Set(data.sizes.flatMap(one => one.rows.map(row => row.size)))].sort((a, b) => a - b);
  if (!sizes.length) return;
  for (const [part, title] of [['p50', 'Median slowdown by flow size'],
    ['p99', '99th percentile of slowdown by flow size']]) {
    const curves = data.sizes.map(({variant, rows}) => ({name: variant || part, variant, marks: true,
      index: indexOf(variant), dash: dashOf(indexOf(variant)),
      points: pointsOf(rows.map(row => [row.size, row[part], row[part + '_ci']]))}));
    figure(find('flows'), {title, curves, xscale: 'log', yscale: 'log', xticks: sizes, xtext: sizeText,
      xrange: [sizes[0] / 1.5, sizes.at(-1) * 1.5], xlabel: 'Flow size up to (octets)', ylabel: 'Slowdown'});
  }
}

function drawSeries() {
  for (const panel of data.panels) {
    const several = panel.samples.length > 1;
    const curves = data.series.flatMap(({variant, samples}) => panel.samples.map((name, i) => ({variant,
      index: indexOf(variant), points: pointsOf(samples[name]), dash: dashOf(several ? i : indexOf(variant)),
      name: [variant, several || !variant ? name : ''].filter(Boolean).join(' ')})));
    figure(find('series'), {title: panel.axis, curves, zooms: true, xlabel: `Time (${data.unit})`,
      ylabel: panel.axis});
  }
}

// The theme is the reader's.
const dark = matchMedia('(prefers-color-scheme: dark)');
const setTheme = () => { document.documentElement.dataset.theme = dark.matches ? 'dark' : 'light'; };
dark.addEventListener('change', setTheme);
setTheme();
drawLegend();
drawCdf();
drawSizes();
drawSeries();
if (data.networks.length) new Recorded(find('network'), data.networks);
const kButtons = {'zoom-in': () => scaleZoom(0.5), 'zoom-out': () => scaleZoom(2),
  'zoom-all': () => shared.setZoom(null)};
for (const [id, act] of Object.entries(kButtons)) find(id)?.addEventListener('click', act);
