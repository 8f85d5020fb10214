// Plot: the arithmetic of curves: scales, ticks, paths. A point is {x, y}; y is NaN where nothing is known.

// Place of a value between the pixels a and b, on a scale 'log' or a linear one.
export function scaleOf(kind, [from, to], a, b) {
  return kind === 'log' ?
      value => a + (b - a) * Math.log(Math.max(value, from * 1e-9) / from) / Math.log(to / from) :
      value => a + (b - a) * (value - from) / (to - from);
}

function linearTicks(from, to, wanted) {
  const raw = (to - from) / wanted, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(x => x * power).find(x => x >= raw * 0.999);
  const ticks = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9; ++i) ticks.push(i * step);
  return ticks;
}
function logTicks(from, to, factors) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(from)); power <= Math.log10(to) + 1; ++power) {
    for (const factor of factors) {
      const tick = factor * 10 ** power;
      if (tick >= from * 0.999 && tick <= to * 1.001) ticks.push(tick);
    }
  }
  return ticks;
}
// Round values of an axis, some `wanted` ones.
export function ticksOf(kind, from, to, wanted) {
  if (kind !== 'log') return linearTicks(from, to, wanted);
  const decades = Math.log10(to / from);
  if (decades < 0.7) return linearTicks(from, to, wanted);
  return logTicks(from, to, decades > 2.5 ? [1] : [1, 2, 5]);
}

// Least and greatest point of each pixel column; one without a value where a column has no other.
export function thinned(points, width) {
  if (points.length <= 2 * width) return points;
  const step = points.length / width, out = [];
  for (let i = 0; i < width; ++i) {
    const part = points.slice(Math.floor(i * step), Math.floor((i + 1) * step));
    let low = part[0], high = part[0];
    for (const point of part) {
      if (Number.isNaN(point.y)) continue;
      if (!(point.y >= low.y)) low = point;
      if (!(point.y <= high.y)) high = point;
    }
    out.push(...(low.x < high.x ? [low, high] : low === high ? [low] : [high, low]));
  }
  return out;
}

// The d of a path. Steps: a value stays until the next point. A point between two gaps is a dot.
export function curve(points, x, y, steps) {
  let d = '', gap = true, last = 0;
  points.forEach((point, i) => {
    if (Number.isNaN(point.y)) {
      gap = true;
      return;
    }
    const at = x(point.x).toFixed(1), high = y(point.y).toFixed(1);
    if (gap) {
      d += `M${at},${high}`;
      if (!points[i + 1] || Number.isNaN(points[i + 1].y)) d += `H${(+at + 1.5).toFixed(1)}`;
    } else if (!steps) d += `L${at},${high}`;
    else d += `H${at}` + (high === last ? '' : `V${high}`);
    gap = false;
    last = high;
  });
  return d;
}

export function nearest(points, x) {
  let best = null;
  for (const point of points) {
    if (!best || Math.abs(point.x - x) < Math.abs(best.x - x)) best = point;
  }
  return best;
}
