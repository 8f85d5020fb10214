// Text: numbers for people, and elements made in one call.

function scaled(value, step, units) {
  let i = 0;
  while (Math.abs(value) >= step && i + 1 < units.length) value /= step, ++i;
  const digits = value === 0 || Math.abs(value) >= 100 || (i === 0 && Number.isInteger(value)) ? 0 :
      Math.abs(value) >= 10 ? 1 : 2;
  return value.toFixed(digits) + units[i];
}
export const bits = value => scaled(value, 1000, [' b/s', ' kb/s', ' Mb/s', ' Gb/s', ' Tb/s']);
export const octets = value => scaled(value, 1024, [' B', ' KB', ' MB', ' GB', ' TB']);
export const count = value => scaled(value, 1000, ['', ' k', ' M', ' G', ' T']);
export const per_second = value => count(value) + '/s';
export const percent = value => (value * 100).toFixed(value < 0.1 && value > 0 ? 1 : 0) + ' %';
export function duration(ns) {
  return ns < 1e9 ? scaled(ns, 1000, [' ns', ' µs', ' ms']) : (ns / 1e9).toFixed(3) + ' s';
}

const kSvg = 'http://www.w3.org/2000/svg';
function made(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === 'function') {
      node.addEventListener(name, value);
    } else {
      node.setAttribute(name, value === true ? '' : value);
    }
  }
  node.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined));
  return node;
}
export const html = (tag, attributes, ...children) =>
  made(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) =>
  made(document.createElementNS(kSvg, tag), attributes, children);

// Offers a file to save.
export function save(name, type, content) {
  const link = html('a', {href: URL.createObjectURL(new Blob([content], {type})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
