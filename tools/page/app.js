// The page: wires the feed to the parts that show it, and keys and buttons to what they do.

import {bits, count, duration, html, octets, per_second, save} from '/text.js';
import {kDebug, Model, takeResult} from '/model.js';
import {Map_} from '/map.js';
import {addTotals, Charts, format_of, number_of} from '/charts.js';
import {Player} from '/player.js';
import {Panel} from '/panel.js';
import {Tables} from '/tables.js';

const find = id => document.getElementById(id);

// The token comes once, behind the address, and is taken out of sight and history.
const kept = 'rocefs-token-' + location.port;
if (location.hash.length > 1) {
  sessionStorage.setItem(kept, location.hash.slice(1));
  history.replaceState(null, '', location.pathname);
}
const token = sessionStorage.getItem(kept) || '';
const headers = {'X-Rocefs-Token': token};
const query = (path, value) => `/api/${path}?path=${encodeURIComponent(value)}`;

let may_store = false, paused = false, charts, map, panel, model, tables, shape, feed;
const pins = [];
const kMostPins = 60;  // fewer than a stream may have

const mount = {
  live: () => !shape.recording,
  may_store: () => may_store,
  list: async path => (await fetch(query('list', path))).json(),
  read: async path => {
    const answer = await fetch(query('file', path));
    return answer.ok ? answer.text() : (await answer.json()).errno;
  },
  store: async (path, text) => {
    try {
      const answer = await fetch('/api/store', {method: 'POST', headers:
          {...headers, 'Content-Type': 'application/json'},
      body: JSON.stringify({path, text: text + '\n'})});
      return answer.ok ? null : await answer.json();
    } catch (error) {
      return {errno: 'EIO', reason: 'rocefs view cannot be reached'};
    }
  },
  pin: path => {
    if (pins.includes(path)) return;
    if (pins.length === kMostPins) return complain(`${kMostPins} files are charted at most`);
    pins.push(path);
    charts.add(path, one => number_of(path, one.value(path)), format_of(path));
    charts.removed = name => {
      pins.splice(pins.indexOf(name), 1);
      listen();
    };
    listen();
  },
};

function complain(text) {
  find('gone').hidden = !text;
  find('gone').textContent = text;
}

function select(index) {
  map.mark(index);
  const node = shape.nodes[index];
  if (node) panel.show(node, shape, index);
  else panel.show_root();
  panel.update(model);
}

function show() {
  map.update(model);
  panel.update(model);
  charts.draw();
  tables.update(model);
  find('clock').textContent = `${model.mode} clock, ${duration(model.now)}`;
  find('advance').hidden = model.mode !== 'virtual' || !may_store;
  const totals = model.totals;
  const facts = [['sent', bits(totals.rate)], ['deepest queue', octets(totals.deepest)],
    ['marks', per_second(totals.marks)], ['drops', per_second(totals.drops)],
    ['paused', count(totals.paused)]];
  find('totals').replaceChildren(...facts.flatMap(([name, value]) =>
    [html('dt', {}, name), html('dd', {'data-total': name}, value)]));
  find('gone').hidden = !model.gone;
  find('gone').textContent = model.gone && `The mount does not answer: ${model.gone}`;
  document.body.dataset.looks = model.looks;
}

// A new stream begins with all files, so that other pins need no more than another stream.
function listen() {
  feed?.close();
  feed = new EventSource('/api/feed' + (pins.length ? '?' : '') +
      pins.map(pin => 'pin=' + encodeURIComponent(pin)).join('&'));
  feed.onmessage = event => {
    const known = model.groups[0].paths;
    model.apply(JSON.parse(event.data));
    if (!paused) charts.take(model);
    if (model.groups[0].paths !== known && known.length) reshape();
    if (!paused) show();
  };
  feed.onerror = () => {
    find('gone').hidden = false;
    find('gone').textContent =
        'rocefs view has ended, cannot be reached, or has too many pages open.';
    // The browser tries again by itself only where the connection broke.
    if (feed.readyState === EventSource.CLOSED) setTimeout(listen, 2000);
  };
  feed.onopen = () => { find('gone').hidden = true; };
}

// A recording instead of a mount: a slider stands for the feed.
async function replay() {
  const text = await (await fetch('/api/recording')).text();
  const messages = text.split('\n').slice(0, -1).map(line => JSON.parse(line));
  find('replay').hidden = false;
  find('pause').hidden = true;
  const slider = find('moment'), button = find('play');
  const player = new Player(messages, shape, {slider, button});
  slider.addEventListener('input', () => player.go(Number(slider.value)));
  button.addEventListener('click', () => player.toggle());
  player.through(now => charts.take(now));
  player.reached = now => {
    model = now;
    charts.moment = model.now;
    charts.at = null;
    show();
  };
  player.go(messages.length);
}

// Devices came or went.
async function reshape() {
  const other = await (await fetch('/api/shape')).json();
  if (!other.nodes || JSON.stringify(other) === JSON.stringify(shape)) return;
  shape = other;
  model.set_shape(shape);
  draw_map();
}
function draw_map() {
  map = new Map_(find('map'), shape, select);
  find('names').replaceChildren(...shape.nodes.map(node => html('option', {value: node.name})));
}

function set_paused(stop) {
  paused = stop;
  find('pause').setAttribute('aria-pressed', String(stop));
  find('pause').textContent = stop ? 'go on' : 'pause';
  if (!stop) show();
}

function set_theme(theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem('theme', theme);
}

function wire() {
  const dark = () => document.documentElement.dataset.theme === 'dark';
  const actions = {
    'pause': () => set_paused(!paused),
    'save-svg': () => save('rocefs.svg', 'image/svg+xml', map.picture()),
    'save-csv': () => save('rocefs.csv', 'text/csv', charts.csv()),
    'save-at': async () => save('rocefs.at', 'text/plain', shape.recording ?
        model.stores.map(one => one.line).join('\n') + '\n' :
        await mount.read(kDebug + 'clock/log')),
    'theme': () => set_theme(dark() ? 'light' : 'dark'),
    'help': () => find('keys').showModal(),
  };
  for (const [id, act] of Object.entries(actions)) find(id).addEventListener('click', act);
  const keys = {p: 'pause', s: 'save-svg', c: 'save-csv', t: 'theme', '?': 'help',
    f: 'tab-flows', d: 'tab-log', l: 'tab-stores'};
  document.addEventListener('keydown', event => {
    const typing = ['INPUT', 'TEXTAREA'].includes(event.target.tagName);
    if (typing || event.ctrlKey || event.altKey || event.metaKey || find('keys').open) return;
    if (keys[event.key]) find(keys[event.key]).click();
    else if (event.key === '+') charts.zoom(0.5);
    else if (event.key === '-') charts.zoom(2);
    else if (event.key === '0') charts.zoom(Infinity);
    else if (event.key === '/') find('find').focus();
    else if (event.key === 'Escape') select(-1);
    else return;
    event.preventDefault();
  });
  find('find').addEventListener('keydown', event => {
    if (event.key !== 'Enter' && event.key !== 'Escape') return;
    const at = shape.nodes.findIndex(node => node.name === find('find').value);
    if (event.key === 'Enter' && at >= 0) {
      select(at);
      map.nodes[at].group.focus();
    } else {
      find('find').blur();
    }
  });
  const clock = async (file, text) => {
    const refused = await mount.store(kDebug + 'clock/' + file, text);
    find('gone').hidden = !refused;
    if (refused) find('gone').textContent = `${refused.errno}: ${refused.dmesg || refused.reason}`;
  };
  find('advance').addEventListener('submit', event => {
    event.preventDefault();
    clock('advance', find('step').value);
  });
  find('idle').addEventListener('click', () => clock('advance', 'idle'));
}

// Results of loads have percentiles for each size, more than the feed has of a file.
async function read_loads() {
  for (const name of model.load_results.keys()) {
    if (!model.loads.some(load => load.name === name)) model.load_results.delete(name);
  }
  for (const load of model.loads) {
    const known = model.load_results.get(load.name);
    if (known?.of === 'done' && load.state === 'done') continue;
    const text = await mount.read(`${kDebug}loads/${load.name}/result`);
    model.load_results.set(load.name, takeResult({of: load.state}, text));
  }
}

async function start() {
  const wanted = localStorage.getItem('theme') ||
      (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  set_theme(wanted);
  shape = await (await fetch('/api/shape')).json();
  may_store = await (await fetch('/api/may-store', {headers})).json();
  find('mount').textContent = shape.mount + (may_store ? '' : ' (read-only)');
  document.title = 'rocefs ' + shape.mount;
  model = new Model(shape);
  charts = new Charts(find('charts'), {live: !shape.recording, keys: true});
  tables = new Tables(find('tables'));
  panel = new Panel(find('panel'), mount);
  addTotals(charts);
  draw_map();
  wire();
  panel.show_root();
  if (shape.recording) {
    find('mount').textContent = shape.recording;
    replay();
    return;
  }
  listen();
  setInterval(read_loads, 1000);
}
start();
