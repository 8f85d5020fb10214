// Map: the picture of the network. Drawn once for a shape; each look changes colours and texts.

import {bits, octets, per_second, percent, svg} from '/text.js';
import {layout} from '/layout.js';

// Class of a load from 0 to 1. Their colours differ in lightness, too, for those who tell hues badly.
const level = load => load <= 0 ? 0 : load < 0.25 ? 1 : load < 0.6 ? 2 : load < 0.9 ? 3 : 4;

// A switch that is narrower shows no name and no bars, its outline alone.
const kLeastNamed = 24;
// With more cables lines are thin.
const kManyCables = 600;

export class Map_ {
  constructor(place, shape, select) {
    this.shape = shape;
    this.select = select;
    this.selected = -1;
    const plan = layout(shape);
    this.plan = plan;
    this.beside = new Map();  // cables by their two ends: parallel ones are drawn side by side
    this.root = svg('svg', {class: shape.cables.length > kManyCables ? 'dense' : false, viewBox: `0 0 ${plan.width} ${plan.height}`, role: 'group',
      'aria-label': 'network', xmlns: 'http://www.w3.org/2000/svg'});
    this.lines = shape.cables.map(cable => this.#draw_cable(cable));
    this.nodes = shape.nodes.map((node, i) => this.#draw_node(node, i));
    place.replaceChildren(this.root);
  }

  // A cable is two half lines: each has the load of the direction that begins there.
  #draw_cable(cable) {
    const a = this.plan.places[cable.a], b = this.plan.places[cable.b];
    const cell = a.cell ? a : b.cell ? b : null;
    if (cell) return {cable, cell: true};
    const from = {x: a.x + a.width / 2, y: a.y < b.y ? a.y + a.height : a.y};
    const to = {x: b.x + b.width / 2, y: b.y < a.y ? b.y + b.height : b.y};
    if (a.y === b.y) from.y = to.y = a.y + a.height / 2;
    const ends = [cable.a, cable.b].sort((one, two) => one - two).join(' ');
    const number = this.beside.get(ends) || 0;
    this.beside.set(ends, number + 1);
    const aside = (number % 2 ? 1 : -1) * Math.ceil(number / 2) * 7;
    from.x += aside;
    to.x += aside;
    const middle = {x: (from.x + to.x) / 2, y: (from.y + to.y) / 2};
    const half = (at, title) => svg('line', {x1: at.x, y1: at.y, x2: middle.x, y2: middle.y,
      class: 'cable'}, title);
    const titles = [svg('title'), svg('title')];
    const halves = [half(from, titles[0]), half(to, titles[1])];
    const drops = svg('text', {x: middle.x, y: middle.y, class: 'drops'});
    this.root.append(...halves, drops);
    return {cable, halves, titles, drops};
  }

  #draw_node(node, i) {
    const {x, y, width, height, cell} = this.plan.places[i];
    const title = svg('title');
    const box = svg('rect', {x, y, width, height, rx: cell ? 3 : 6, class: 'box'});
    const parts = {title, box, cell};
    const group = svg('g', {class: `node ${node.kind}`, tabindex: i ? -1 : 0, role: 'button',
      'data-name': node.name, 'aria-label': `${node.kind} ${node.name}`,
      click: () => this.select(i), focus: () => this.#reached(i),
      keydown: event => this.#key(event, i)}, title, box);
    if (!cell && width >= kLeastNamed) {
      const few = width < 60;
      group.append(svg('text', {x: x + width / 2, y: y + (node.kind === 'switch' ? 15 : 14),
        class: 'name'}, few ? node.name.slice(-4) : node.name));
      parts.text = svg('text', {x: x + width / 2, y: y + 28, class: 'fact'});
      group.append(parts.text);
    }
    if (node.kind === 'switch' && width >= kLeastNamed) {
      parts.fill = svg('rect', {x: x + 4, y: y + height - 14, width: 0, height: 3, class: 'fill'});
      parts.ports = [];
      parts.bars = svg('g');
      group.append(parts.fill, parts.bars);
    }
    this.root.append(group);
    parts.group = group;
    return parts;
  }

  // One node is a stop of Tab: the one that was reached last. Arrows lead to the others.
  #reached(i) {
    this.nodes[this.stop || 0].group.setAttribute('tabindex', -1);
    this.nodes[i].group.setAttribute('tabindex', 0);
    this.stop = i;
  }

  // The nearest node in the direction of the key.
  #key(event, i) {
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      this.select(i);
      return;
    }
    const way = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[
        event.key];
    if (!way) return;
    event.preventDefault();
    const middle = at => [at.x + at.width / 2, at.y + at.height / 2];
    const [x, y] = middle(this.plan.places[i]);
    let best = -1, least = Infinity;
    this.plan.places.forEach((place, other) => {
      const [dx, dy] = middle(place).map((at, axis) => at - [x, y][axis]);
      const along = dx * way[0] + dy * way[1], aside = Math.abs(dx * way[1]) + Math.abs(dy * way[0]);
      if (along > 1 && along + 3 * aside < least) least = along + 3 * aside, best = other;
    });
    if (best >= 0) this.nodes[best].group.focus();
  }

  mark(i) {
    this.nodes[this.selected]?.group.classList.remove('selected');
    this.selected = i;
    this.nodes[i]?.group.classList.add('selected');
  }

  update(model) {
    const device_load = new Map();
    for (const {cable, cell, halves, titles, drops} of this.lines) {
      const links = [model.links.get(cable.out), model.links.get(cable.back)];
      for (const [end, link] of [[cable.a, links[0]], [cable.b, links[1]]]) {
        if (link && this.shape.nodes[end].kind !== 'switch') {
          const ports = device_load.get(end) || [];
          ports.push({out: link, in: links[link === links[0] ? 1 : 0]});
          device_load.set(end, ports);
        }
      }
      if (cell) continue;
      let lost = 0;
      halves.forEach((line, direction) => {
        const link = links[direction];
        if (!link) return;
        lost += link.drops;
        set(line, 'class', `cable load-${level(link.load)}${link.up ? '' : ' down'}`);
        set_text(titles[direction], `${direction ? cable.back : cable.out}: ${bits(link.rate)}, ` +
            `${percent(link.load)} of ${bits(link.speed)}` +
            (link.drops ? `, ${per_second(link.drops)} lost` : '') + (link.up ? '' : ', down'));
      });
      set_text(drops, lost ? `✕ ${per_second(lost)}` : '');
    }
    this.nodes.forEach((parts, i) => {
      const node = this.shape.nodes[i];
      if (node.kind === 'switch') this.#update_switch(parts, this.plan.places[i], model, node.name);
      else this.#update_device(parts, node, device_load.get(i), model.devices.get(node.name));
    });
  }

  #update_device(parts, node, ports = [], device) {
    const every = ports.flatMap(port => [port.out, port.in]).filter(link => link);
    const sum = (way, key) => ports.reduce((total, port) => total + (port[way]?.[key] || 0), 0);
    const load = Math.max(0, ...every.map(link => link.load));
    const lost = every.reduce((total, link) => total + link.drops, 0);
    const down = every.some(link => !link.up);
    const cnps = device?.rates.rp_cnp_handled || 0;
    set(parts.box, 'class', `box${parts.cell ? ' cell' : ''} load-${level(load)}` +
        `${down ? ' down' : ''}${lost ? ' lost' : ''}`);
    const facts = `${node.name}: out ${bits(sum('out', 'rate'))}, in ${bits(sum('in', 'rate'))}` +
        (cnps ? `, CNPs handled ${per_second(cnps)}` : '') +
        (lost ? `, ${per_second(lost)} lost` : '') + (down ? ', down' : '');
    set_text(parts.title, facts);
    set(parts.group, 'aria-label', `${node.kind} ${facts}`);
    if (parts.text) set_text(parts.text, down ? 'down' : `↑${bits(sum('out', 'rate'))}`);
  }

  #update_switch(parts, place, model, name) {
    const it = model.switches.get(name);
    if (!it) return;
    const full = it.size ? it.used / it.size : 0;
    if (parts.fill) set(parts.fill, 'width', (Math.min(full, 1) * (place.width - 8)).toFixed(1));
    if (parts.text) set_text(parts.text, octets(it.used));
    set(parts.box, 'class', `box${it.marks ? ' marks' : ''}${it.paused ? ' paused' : ''}`);
    set(parts.group, 'aria-label', `switch ${name}: ${octets(it.used)} of ${octets(it.size)} stored`);
    set_text(parts.title, `${name}: ${octets(it.used)} of ${octets(it.size)} stored` +
        (it.marks ? `, ${per_second(it.marks)} marked` : '') +
        (it.paused ? `, ${it.paused} priorities of ports paused` : ''));
    if (!parts.bars) return;
    // A bar for each port: what waits there, on a logarithmic scale up to the switch's memory.
    const ports = [...it.ports.entries()];
    if (parts.ports.length !== ports.length) {
      const step = (place.width - 8) / ports.length;
      parts.ports = ports.map(([number], at) => svg('rect', {x: place.x + 4 + at * step,
        width: Math.max(step - 1, 0.6), class: 'queue', 'data-port': number}));
      parts.bars.replaceChildren(...parts.ports);
    }
    ports.forEach(([, port], at) => {
      const high = port.bytes > 0 ? Math.log2(1 + port.bytes / 1024) /
          Math.log2(1 + it.size / 1024) * 10 + 1 : 0;
      const bar = parts.ports[at];
      set(bar, 'height', high.toFixed(1));
      set(bar, 'y', (place.y + place.height - 2 - high).toFixed(1));
      set(bar, 'class', port.paused ? 'queue paused' : 'queue');
    });
  }

  // The picture as a file, with the styles that it has on the page.
  picture() {
    const copy = this.root.cloneNode(true);
    const own = this.root.querySelectorAll('*'), copies = copy.querySelectorAll('*');
    const kStyles = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'font-family', 'font-size',
      'font-weight', 'text-anchor', 'opacity'];
    own.forEach((node, i) => {
      const style = getComputedStyle(node);
      for (const name of kStyles) copies[i].style[name] = style.getPropertyValue(name);
      copies[i].removeAttribute('tabindex');
    });
    copy.style.background = getComputedStyle(document.body).backgroundColor;
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + new XMLSerializer().serializeToString(copy);
  }
}

// A write to the document costs even where it changes nothing.
function set(node, name, value) {
  if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}
function set_text(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
