// Model: the mount's files as the feed tells them, and what follows from two looks: rates.

export const kDebug = 'kernel/debug/rocefs/';

const kUnits = {k: 1e3, M: 1e6, G: 1e9, T: 1e12};
// A rate as the tree shows it: 100G.
export function parseRate(text) {
  const match = /^([\d.]+)([kMGT]?)/.exec(text || '');
  return match ? Number(match[1]) * (kUnits[match[2]] || 1) : 0;
}

const kSizes = {K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40};
// A size as the tree shows it: 12M.
export function parseSize(text) {
  const match = /^([\d.]+)([KMGT]?)/.exec(text || '');
  return match ? Number(match[1]) * (kSizes[match[2]] || 1) : 0;
}

// Least time of the real clock for a rate, ns.
const kLeastTime = 5e6;

const kTimes = {ns: 1, us: 1e3, ms: 1e6, s: 1e9};
// A time as the tree shows it, in ns: 1us; a bare number is ns.
export function parseDuration(text) {
  const match = /^([\d.]+)(ns|us|ms|s)?$/.exec(text || '');
  return match ? Number(match[1]) * kTimes[match[2] || 'ns'] : NaN;
}

export class Model {
  constructor(shape) {
    this.counters = new Map();  // by path: what rates begin with; they outlive another set of files
    this.set_shape(shape);
    this.groups = [0, 1, 2].map(() => ({paths: [], values: [], numbers: [], at: new Map()}));
    this.now = 0;       // ns
    this.since = 0;     // time of the counters that rates begin with
    this.mode = 'real';
    this.looks = 0;
    this.links = new Map();
    this.switches = new Map();
    this.devices = new Map();
    this.flows = [];
    this.loads = [];
    this.load_results = new Map();  // by name: texts that may be longer than the feed has
    this.dmesg = [];
    this.stores = [];   // {at: ns, text}
    this.gone = '';
    this.totals = {rate: 0, marks: 0, drops: 0, paused: 0, deepest: 0};
  }

  // Links by the device that they leave.
  set_shape(shape) {
    this.shape = shape;
    this.leaving = new Map();
    for (const cable of shape.cables) {
      for (const [end, link] of [[cable.a, cable.out], [cable.b, cable.back]]) {
        if (shape.nodes[end].kind === 'device') this.leaving.set(link, shape.nodes[end].name);
      }
    }
  }

  value(path) {
    for (const group of this.groups) {
      const at = group.at.get(path);
      if (at !== undefined) return group.values[at];
    }
    return undefined;
  }

  // Takes a message whose picture is wanted: rates since the message before, flows.
  apply(message) {
    this.absorb(message);
    if (!this.gone) this.#follow();
    this.#read_flows();
  }

  // Takes the texts of a message alone.
  absorb(message) {
    for (const part of message.groups) {
      const group = this.groups[part.g];
      if (part.paths) {
        group.paths = part.paths;
        group.values = part.values.slice();  // a recording applies its messages again
        group.numbers = part.values.map(Number);
        group.at = new Map(part.paths.map((path, i) => [path, i]));
        if (part.g === 0) this.#index(group);
      } else {
        for (let i = 0; i < part.c.length; i += 2) {
          group.values[part.c[i]] = part.c[i + 1];
          group.numbers[part.c[i]] = Number(part.c[i + 1]);
        }
      }
    }
    this.gone = message.gone || '';
    if (message.dmesg) this.dmesg = this.dmesg.concat(message.dmesg).slice(-2000);
    if (message.stores) this.#take_stores(message.stores);
    ++this.looks;
  }

  #take_stores(lines) {
    for (const line of lines) {
      const match = /^@(\d+)\S*\s+(.*)$/.exec(line);
      if (match) this.stores.push({at: Number(match[1]), text: match[2], line});
    }
    this.stores = this.stores.slice(-2000);
  }

  // Places of the files in group 0.
  #index(group) {
    this.links.clear();
    this.switches.clear();
    this.devices.clear();
    group.paths.forEach((path, i) => {
      const part = path.split('/');
      if (part[0] === 'class') {
        const device = entry(this.devices, part[2], () => ({at: {}, values: {}, rates: {}}));
        (device.at[part[6]] ||= []).push(i);
      } else if (part[3] === 'links') {
        entry(this.links, part[4], () => ({at: {}, rate: 0, load: 0, drops: 0})).at[part[5]] = i;
      } else if (part[3] === 'fabric') {
        const it = entry(this.switches, part[4], () => ({at: {}, ports: new Map(), marks: 0}));
        if (part[5] === 'buffer') {
          it.at[part[6]] = i;
        } else {
          const port = entry(it.ports, Number(part[6]), () => ({queue: [], pfc: []}));
          (port[part[7]][Number(part[8])] ||= {at: {}, marks: 0}).at[part[9]] = i;
        }
      }
    });
  }

  #follow() {
    const group = this.groups[0], numbers = group.numbers;
    // The files of a look are read one after the other. The first and the last one are the time.
    const last = numbers.length - 1, begin = numbers[0] || 0, now = numbers[last] || 0;
    const time_of = at => begin + (now - begin) * at / last;
    this.mode = (group.values[group.at.get(kDebug + 'clock/mode')] || '').includes('[virtual]') ?
        'virtual' : 'real';
    // Without time there is no rate: what the last time showed stays.
    const passed = now - this.since;
    const known = passed > (this.mode === 'real' ? kLeastTime : 0);
    if (passed < 0) this.counters.clear();  // another mount
    if (known || passed < 0) this.since = now;
    const rate = (holder, key, at) => {
      if (at === undefined) return 0;
      const path = group.paths[at], counter = this.counters.get(path);
      holder[key] = numbers[at];
      if (!counter) {
        this.counters.set(path, {value: numbers[at], time: time_of(at), rate: 0});
        return 0;
      }
      if (known) {
        counter.rate = Math.max(numbers[at] - counter.value, 0) * 1e9 /
            Math.max(time_of(at) - counter.time, 1);
        counter.value = numbers[at];
        counter.time = time_of(at);
      }
      return counter.rate;
    };
    const totals = {rate: 0, marks: 0, drops: 0, paused: 0, deepest: 0};
    this.speed = 0;  // of the fastest device
    for (const [name, link] of this.links) {
      link.up = group.values[link.at.state] !== 'down';
      link.speed = parseRate(group.values[link.at.rate]);
      link.rate = rate(link, 'bytes', link.at.bytes) * 8;
      link.load = link.speed ? Math.min(link.rate / link.speed, 1) : 0;
      link.drops = rate(link, 'lost', link.at.lost) + rate(link, 'overflowed', link.at.overflowed);
      totals.drops += link.drops;
      if (!this.leaving.has(name)) continue;
      totals.rate += link.rate;
      this.speed = Math.max(this.speed, link.speed);
    }
    for (const it of this.switches.values()) {
      it.used = numbers[it.at.used];
      it.size = parseSize(group.values[it.at.size]);
      it.marks = it.queued = it.paused = 0;
      for (const port of it.ports.values()) {
        port.bytes = 0;
        // A report leaves out queues that are not used: the arrays have holes.
        port.queue.forEach(queue => {
          queue.bytes = numbers[queue.at.bytes] || 0;
          queue.marks = rate(queue, 'marked', queue.at.marked);
          queue.drops = rate(queue, 'dropped', queue.at.dropped);
          port.bytes += queue.bytes;
          it.marks += queue.marks;
          totals.deepest = Math.max(totals.deepest, queue.bytes);
        });
        port.paused = 0;
        port.pfc.forEach(pfc => {
          pfc.paused = numbers[pfc.at.paused] > 0;
          pfc.sent = rate(pfc, 'pause_sent', pfc.at.pause_sent);
          port.paused += pfc.paused;
        });
        it.paused += port.paused;
        it.queued = Math.max(it.queued, port.bytes);
      }
      totals.marks += it.marks;
      totals.paused += it.paused;
    }
    for (const device of this.devices.values()) {
      for (const [key, at] of Object.entries(device.at)) {
        const holder = device.values[key] ||= at.map(() => ({}));
        device.rates[key] = at.reduce((sum, i, n) => sum + rate(holder[n], key, i), 0);
      }
    }
    this.totals = totals;
    this.now = now;
  }

  #read_flows() {
    const flows = new Map(), loads = new Map(), group = this.groups[1];
    group.paths.forEach((path, i) => {
      const part = path.split('/');
      const it = entry(part[3] === 'traffic' ? flows : loads, part[4], () => ({name: part[4]}));
      if (part[5] === 'result') takeResult(it, group.values[i]);
      else it[part[5]] = group.values[i];
    });
    this.flows = [...flows.values()];
    this.loads = [...loads.values()].map(load => ({...this.load_results.get(load.name), ...load}));
  }
}

// Lines `KEY VALUE`.
export function takeResult(into, text) {
  for (const line of text.split('\n')) {
    const blank = line.indexOf(' ');
    if (blank > 0) into[line.slice(0, blank)] = line.slice(blank + 1);
  }
  return into;
}

function entry(map, key, make) {
  let found = map.get(key);
  if (!found) map.set(key, found = make());
  return found;
}
