// Layout: places of nodes by the shape of the network. Devices stand below the switch that they are
// connected to, as a rack; switches in layers by their distance from devices.

const kWidth = 1200;
const kSwitch = {width: 112, height: 46};
const kGap = 18;

export function layout(shape) {
  const near = shape.nodes.map(() => []);
  shape.cables.forEach((cable, number) => {
    near[cable.a].push({to: cable.b, number});
    near[cable.b].push({to: cable.a, number});
  });
  const layers = distances(shape, near);
  const racks = new Map();  // by switch: its devices
  const alone = [];
  shape.nodes.forEach((node, i) => {
    if (node.kind === 'switch') return;
    const home = near[i].find(({to}) => shape.nodes[to].kind === 'switch');
    if (!home) alone.push(i);
    else racks.set(home.to, [...(racks.get(home.to) || []), i]);
  });
  const height = Math.max(0, ...layers);
  const rows = [];
  for (let layer = height; layer >= 1; --layer) {
    rows.push(shape.nodes.map((_, i) => i).filter(i => layers[i] === layer));
  }
  const places = new Array(shape.nodes.length);
  let y = 30;
  const order = new Map();  // of a switch, along its row
  // Rows are ordered from below, by what they are connected to.
  for (const row of rows.slice().reverse()) {
    const weight = i => {
      const below = near[i].filter(({to}) => order.has(to)).map(({to}) => order.get(to));
      return below.length ? below.reduce((a, b) => a + b) / below.length : 0;
    };
    if (row !== rows[rows.length - 1]) row.sort((a, b) => weight(a) - weight(b) || a - b);
    row.forEach((i, at) => order.set(i, (at + 0.5) / row.length));
  }
  for (const row of rows) {
    const slot = kWidth / row.length;
    const width = Math.min(kSwitch.width, slot - (slot < 20 ? 1 : 4));
    row.forEach((i, at) => {
      places[i] = {x: slot * (at + 0.5) - width / 2, y, width, height: kSwitch.height};
    });
    y += kSwitch.height + (row === rows[rows.length - 1] ? 34 : 90);
  }
  y = Math.max(y, place_racks(rows[rows.length - 1] || [], racks, places, y));
  if (alone.length) y = place_row(alone, places, y + 10);
  return {places, width: kWidth, height: y + 20};
}

// 0 for devices and uplinks, 1 for switches with devices, and so on.
function distances(shape, near) {
  const layers = shape.nodes.map(node => node.kind === 'switch' ? -1 : 0);
  let edge = layers.map((layer, i) => layer === 0 ? i : -1).filter(i => i >= 0);
  for (let layer = 1; edge.length; ++layer) {
    const next = [];
    for (const i of edge) {
      for (const {to} of near[i]) {
        if (layers[to] === -1) layers[to] = layer, next.push(to);
      }
    }
    edge = next;
  }
  return layers.map(layer => layer === -1 ? 1 : layer);
}

// A rack that has no room for names shows its devices as cells.
function folded(racks) {
  return Math.max(0, ...[...racks.values()].map(rack => rack.length)) * racks.size > 24;
}

function place_racks(switches, racks, places, y) {
  let bottom = y;
  const slot = kWidth / Math.max(switches.length, 1);
  const fold = folded(racks);
  for (const [home, devices] of racks) {
    const over = places[home], middle = over.x + over.width / 2;
    const room = Math.min(slot - kGap / 2, kWidth);
    const gap = fold ? 3 : 10;
    // Cells are as large as four rows of them allow, from 9 to 30.
    const least = fold ? 9 : 60, most = fold ? 30 : 92;
    const wanted = Math.ceil(devices.length / (fold ? 4 : 1));
    const columns = Math.max(1, Math.min(devices.length, Math.max(wanted, 1),
        Math.floor((room + gap) / (least + gap))));
    const cell = Math.min(most, (room + gap) / columns - gap), tall = fold ? cell : 34;
    devices.forEach((i, at) => {
      const column = at % columns, row = Math.floor(at / columns);
      const in_row = Math.min(columns, devices.length - row * columns);
      const left = middle - (in_row * (cell + gap) - gap) / 2;
      const top = (fold ? y - 22 : y + 16) + row * (tall + gap);
      places[i] = {x: fold ? middle - (columns * (cell + gap) - gap) / 2 + column * (cell + gap) :
                       left + column * (cell + gap),
        y: top, width: cell, height: tall, cell: fold};
      bottom = Math.max(bottom, top + tall);
    });
  }
  return bottom;
}

function place_row(nodes, places, y) {
  const slot = kWidth / nodes.length, width = Math.min(92, slot - 6);
  nodes.forEach((i, at) => {
    places[i] = {x: slot * (at + 0.5) - width / 2, y, width, height: 34, cell: width < 40};
  });
  return y + 34;
}
