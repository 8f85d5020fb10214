// Tables: flows and loads, the log, the stores.

import {bits, count, duration, html, octets} from '/text.js';

const kShownLines = 500;

export class Tables {
  constructor(place) {
    this.place = place;
    this.key = 'name';
    this.down = false;
    for (const name of ['flows', 'log', 'stores']) {
      place.querySelector('#tab-' + name).addEventListener('click', () => this.show(name));
    }
    this.show('flows');
  }

  show(name) {
    this.shown = name;
    for (const one of ['flows', 'log', 'stores']) {
      this.place.querySelector('#' + one).hidden = one !== name;
      this.place.querySelector('#tab-' + one).setAttribute('aria-selected', String(one === name));
    }
    if (this.model) this.update(this.model);
  }

  update(model) {
    this.model = model;
    if (this.shown === 'flows') this.#flows(model);
    if (this.shown === 'log') this.#lines('log', model.dmesg);
    if (this.shown === 'stores') this.#lines('stores', model.stores.map(one => one.line));
  }

  #flows(model) {
    const place = this.place.querySelector('#flows');
    if (!model.flows.length && !model.loads.length) {
      if (!place.querySelector('.empty')) {
        place.replaceChildren(html('p', {class: 'empty'},
            model.shape.recording ? 'No flows.' :
                'No flows. A store to kernel/debug/rocefs/traffic/start begins one.'));
      }
      return;
    }
    const columns = [['name', 'flow', one => one.name], ['state', 'state', one => one.state || ''],
      ['bytes', 'octets', one => Number(one.bytes || 0), octets],
      ['elapsed_ns', 'FCT', one => Number(one.elapsed_ns || 0), duration],
      ['goodput_bps', 'goodput', one => Number(one.goodput_bps || 0), bits],
      ['slowdown', 'slowdown', one => slowdown(one, model), value => value ? value.toFixed(2) : '–'],
      ['rate', 'rate', one => Number(one.rate || 0), bits],
      ['window', 'window', one => Number(one.window || 0),
        value => value >= 4294967295 ? 'none' : octets(value)],
      ['retransmitted', 'retransmitted', one => Number(one.retransmitted || 0), count],
      ['cnps', 'CNPs', one => Number(one.cnps || 0), count],
      ['timeouts', 'time-outs', one => Number(one.timeouts || 0), count]];
    const by = columns.find(([key]) => key === this.key)[2];
    const flows = [...model.flows].sort((a, b) => {
      const [x, y] = [by(a), by(b)];
      const order = typeof x === 'string' ? x.localeCompare(y, 'en', {numeric: true}) : x - y;
      return this.down ? -order : order;
    });
    // The heading stays: a button that is replaced while it is pressed is never clicked.
    if (!this.body?.isConnected) {
      this.heads = columns.map(([key, label]) => html('th', {}, html('button', {'data-key': key,
        click: () => {
          this.down = key === this.key && !this.down;
          this.key = key;
          this.update(this.model);
        }}, label)));
      this.body = html('tbody');
      this.load_lines = html('div');
      place.replaceChildren(html('table', {}, html('thead', {}, html('tr', {}, this.heads)),
          this.body), this.load_lines);
    }
    this.heads.forEach((head, i) => head.setAttribute('aria-sort', columns[i][0] === this.key ?
        (this.down ? 'descending' : 'ascending') : 'none'));
    const rows = flows.slice(0, kShownLines).map(one => html('tr', {class: one.state || false},
        columns.map(([, , value, format]) => html('td', {class: format ? 'number' : false},
            format ? format(value(one)) : value(one)))));
    // What is selected, to be copied, stays as it is.
    if (!getSelection().containsNode(this.body, true) || getSelection().isCollapsed) {
      this.body.replaceChildren(...rows);
    }
    this.load_lines.replaceChildren(...model.loads.map(one =>
      html('p', {class: 'load'}, load_line(one))));
  }

  #lines(name, lines) {
    const place = this.place.querySelector('#' + name);
    const text = lines.slice(-kShownLines).join('\n');
    let pre = place.querySelector('pre');
    if (!pre) place.append(pre = html('pre', {tabindex: 0}));
    if (pre.textContent === text) return;
    const at_end = place.scrollTop + place.clientHeight >= place.scrollHeight - 30;
    pre.textContent = text;
    if (at_end) place.scrollTop = place.scrollHeight;
  }
}

function load_line(load) {
  const parts = [`load ${load.name}: ${load.state || ''}`];
  if (load.started !== undefined) {
    parts.push(`${load.done} of ${load.started} flows done, ${load.failed} failed`);
  }
  for (const part of ['p50', 'p99']) {
    const fct = load['fct_ns_' + part];
    if (fct !== undefined) parts.push(`FCT ${part} ${duration(Number(fct))}`);
  }
  return parts.join(', ');
}

// FCT over the time that the octets alone take at the rate of the fastest device.
function slowdown(flow, model) {
  const bytes = Number(flow.bytes || 0), elapsed = Number(flow.elapsed_ns || 0);
  return bytes && elapsed && model.speed ? elapsed / (bytes * 8e9 / model.speed) : 0;
}
