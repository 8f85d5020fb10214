// Panel: what is selected: facts of a device or a switch, and any directory of the mount with its
// files, which can be stored and followed over time.

import {bits, html, octets, per_second, percent} from '/text.js';
import {kDebug} from '/model.js';

export class Panel {
  // `store(path, text)` answers null, or {errno, reason, dmesg}.
  constructor(place, mount) {
    this.place = place;
    this.mount = mount;  // {live, list, read, store, pin}
    this.open = new Map();  // directories that are open: path -> element
    this.rows = new Map();  // files shown: path -> row
    this.facts = html('div', {class: 'facts'});
    this.title = html('h2', {}, 'nothing selected');
    this.files = html('div', {class: 'files'});
    place.append(this.title, this.facts, this.files);
    if (mount.live()) setInterval(() => this.refresh(), 1000);
  }

  show_root() {
    this.title.textContent = this.mount.live() ? 'the mount' : 'nothing selected';
    this.node = null;
    this.#show(this.mount.live() ?
        [['class/infiniband', false], [kDebug.slice(0, -1), false]] : []);
  }

  show(node, shape, index) {
    this.node = node;
    this.cables = shape.cables.filter(cable => cable.a === index || cable.b === index);
    this.title.textContent = node.name;
    if (!this.mount.live()) {
      this.#show([]);
    } else if (node.kind === 'switch') {
      this.#show([[kDebug + 'fabric/' + node.name, true]]);
    } else {
      const links = this.cables.flatMap(cable => [cable.out, cable.back]);
      const own = node.kind === 'device' ? [['class/infiniband/' + node.name, true]] : [];
      this.#show([...own, ...links.map(name => [kDebug + 'links/' + name, false])]);
    }
  }

  #show(roots) {
    this.open.clear();
    this.rows.clear();
    this.facts.replaceChildren();
    this.files.replaceChildren(...roots.map(([path, open]) => this.#directory(path, path, open)));
  }

  #directory(path, label, open) {
    const body = html('div', {class: 'body'});
    const details = html('details', {'data-path': path}, html('summary', {}, label), body);
    details.addEventListener('toggle', async () => {
      if (!details.open || body.childElementCount) return;
      const entries = await this.mount.list(path);
      if (!Array.isArray(entries)) {
        body.textContent = entries.reason;
        return;
      }
      body.replaceChildren(...entries.filter(one => !one.directory).map(one => this.#file(path, one)),
          ...entries.filter(one => one.directory && one.name !== 'subsystem' && one.name !== 'device')
              .map(one => this.#directory(path + '/' + one.name, one.name, false)));
      this.refresh();
    });
    details.open = open;
    return details;
  }

  #file(directory, entry) {
    const path = directory + '/' + entry.name;
    const row = {path, readable: entry.readable};
    const said = html('p', {class: 'said', role: 'status'});
    const name = html('label', {title: path, for: path}, entry.name);
    if (entry.writable) {
      row.input = html('input', {id: path, autocomplete: 'off', spellcheck: 'false',
        placeholder: entry.readable ? '' : 'store', disabled: !this.mount.may_store()});
      const form = html('form', {submit: async event => {
        event.preventDefault();
        row.input.setAttribute('aria-busy', 'true');
        const refused = await this.mount.store(path, row.input.value);
        row.input.removeAttribute('aria-busy');
        said.textContent = refused ? `${refused.errno}: ${refused.dmesg || refused.reason}` : '';
        row.input.setAttribute('aria-invalid', refused ? 'true' : 'false');
        row.edited = Boolean(refused);
        this.refresh();
      }}, name, row.input);
      row.input.addEventListener('input', () => { row.edited = true; });
      row.input.addEventListener('keydown', event => {
        if (event.key !== 'Escape') return;
        row.edited = false;
        said.textContent = '';
        row.input.blur();
        this.refresh();
      });
      row.element = html('div', {class: 'file', 'data-path': path}, form, said);
    } else {
      row.output = html('output', {id: path});
      row.element = html('div', {class: 'file', 'data-path': path},
          html('form', {submit: event => event.preventDefault()}, name, row.output));
    }
    if (entry.readable) {
      row.element.firstChild.append(html('button', {type: 'button', class: 'pin', title:
          'show ' + path + ' over time', click: () => this.mount.pin(path)}, '∿'));
    }
    this.rows.set(path, row);
    return row.element;
  }

  // Reads the files that are to be seen.
  async refresh() {
    if (this.refreshing || document.hidden) return;
    this.refreshing = true;
    try {
      for (const row of this.rows.values()) {
        if (!row.readable || !row.element.offsetParent || row.edited) continue;
        const text = (await this.mount.read(row.path)).replace(/\n$/, '');
        if (row.output) row.output.textContent = text;
        else if (!row.edited) row.input.value = text;
      }
    } finally {
      this.refreshing = false;
    }
  }

  update(model) {
    if (!this.node) return;
    if (this.node.kind === 'switch') this.#switch_facts(model, model.switches.get(this.node.name));
    else this.#device_facts(model, model.devices.get(this.node.name));
  }

  // Both directions of each cable: load, drops, state.
  #link_rows(model) {
    return this.cables.flatMap(cable => [cable.out, cable.back]).flatMap(name => {
      const link = model.links.get(name);
      return link ? [[name, link.up ? `${bits(link.rate)}  ${percent(link.load)}` +
          (link.drops ? `  ${per_second(link.drops)} lost` : '') : 'down']] : [];
    });
  }
  #table(rows) {
    return html('table', {}, rows.map(([name, text]) =>
      html('tr', {}, html('th', {scope: 'row'}, name), html('td', {}, text))));
  }

  #device_facts(model, device) {
    if (!device) return;
    const rows = this.#link_rows(model);
    const kNames = {rp_cnp_handled: 'CNPs handled', np_cnp_sent: 'CNPs sent',
      sr_retrans: 'retransmitted (SR)', packet_seq_err: 'sequence errors',
      out_of_sequence: 'out of sequence', local_ack_timeout_err: 'time-outs'};
    for (const [key, label] of Object.entries(kNames)) {
      const total = (device.values[key] || []).reduce((sum, one) => sum + (one[key] || 0), 0);
      if (device.at[key]) rows.push([label, `${per_second(device.rates[key] || 0)}  (${total})`]);
    }
    this.facts.replaceChildren(this.#table(rows));
  }

  // Ports and priorities in use: what waits, and who is paused.
  #switch_facts(model, it) {
    if (!it) return;
    const used = [...Array(8).keys()].filter(priority => [...it.ports.values()].some(port =>
      port.queue[priority]?.bytes || port.queue[priority]?.marks || port.queue[priority]?.marked ||
      port.pfc[priority]?.paused));
    const priorities = used.length ? used : [0];
    const head = html('tr', {}, html('th', {}, 'port'), priorities.map(one => html('th', {}, `prio ${one}`)),
        html('th', {}, 'marks'), html('th', {}, 'drops'));
    const rows = [...it.ports].map(([number, port]) => {
      const marks = port.queue.reduce((sum, queue) => sum + queue.marks, 0);
      const drops = port.queue.reduce((sum, queue) => sum + queue.drops, 0);
      return html('tr', {class: port.paused ? 'paused' : false}, html('th', {scope: 'row'}, number),
          priorities.map(one => html('td', {}, octets(port.queue[one]?.bytes || 0) +
              (port.pfc[one]?.paused ? ' ⏸' : ''))),
          html('td', {}, marks ? per_second(marks) : ''), html('td', {}, drops ? per_second(drops) : ''));
    });
    this.facts.replaceChildren(html('p', {}, `${octets(it.used)} of ${octets(it.size)} stored`),
        html('div', {class: 'scroll', tabindex: 0}, html('table', {class: 'queues'}, head, rows)),
        html('div', {class: 'scroll', tabindex: 0}, this.#table(this.#link_rows(model))));
  }
}
