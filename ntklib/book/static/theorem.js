// Twin of ntklib/book/explorables/theorem.py: what a step in the two angles of a unit of R³ does to its direction.

const radian = Math.PI / 180, TINY = 1e-9, LIMB = -1e-9;
const direction = (a, b) => [Math.cos(a), Math.sin(a) * Math.cos(b), Math.sin(a) * Math.sin(b)];
const norm = v => Math.hypot(...v);
const between = (u, v) => 2 * Math.atan2(norm(u.map((x, k) => x - v[k])), norm(u.map((x, k) => x + v[k])));
// four Gauss points on [0, 1]
const NODES = [0.06943184420297371, 0.33000947820757187, 0.6699905217924281, 0.9305681557970263];
const WEIGHTS = [0.17392742256872693, 0.32607257743127307, 0.32607257743127307, 0.17392742256872693];

const columns = points => ({ x: points.map(w => w[0]), y: points.map(w => w[1]), z: points.map(w => w[2]) });
const line = points => {                        // with a number for each stretch on one side of the sphere
  const near = points.map(w => w[2] !== null && w[2] >= LIMB);
  let run = 0;
  return { ...columns(points), run: near.map((side, k) => k && side !== near[k - 1] ? ++run : run) };
};

// the sphere's tables for a step (p, q) from (a, b), in radians
function scene([a, b, p, q], { constant, cos, sin }) {
  const leaning = ([pole, front, side]) => [side, pole * cos - front * sin, pole * sin + front * cos];
  const at = s => direction(a + s * p, b + s * q), u = at(0), v = at(1), turned = between(u, v), sine = Math.sin(turned);
  const short = constant.shares.map(s => {
    if (turned < TINY) return leaning(u);
    return sine > TINY ? leaning(u.map((x, k) => (Math.sin((1 - s) * turned) * x + Math.sin(s * turned) * v[k]) / sine)) : [null, null, null];
  });
  const ends = [u, v].map(leaning), gap = [ends[1][0] - ends[0][0], ends[1][1] - ends[0][1]], far = norm(gap);
  const away = far < TINY ? [0, 1] : [gap[0] / far, gap[1] / far], by = [-0.22, 0.22];
  return {
    grid: constant.grid,
    path: { ...line(constant.along.map(s => leaning(at(s)))), order: constant.order },
    arc: { ...line(short), order: constant.share_order },
    ends: { ...columns(ends), name: constant.names, name_x: ends.map((w, i) => w[0] + by[i] * away[0]), name_y: ends.map((w, i) => w[1] + by[i] * away[1]) },
  };
}

export function half_turn({ theta, eps }, given) {
  const a = theta * radian, start = direction(a, 0), { turns } = given.constant;
  const angle = turns.map(q => between(start, direction(a, q * radian)) / radian), printed = turns.map(q => Math.sin(a) * q);
  const { arc: { x, y, z, run, order }, ...rest } = scene([a, 0, 0, eps * radian], given);
  const now = between(start, direction(a, eps * radian)) / radian, said = Math.sin(a) * eps;
  return {
    ...rest,
    arc: { short_x: x, short_y: y, z, run, order },
    curve: { eps: turns, angle, printed },
    now: { eps: [eps], angle: [now], printed: [said] },
    scalar: { angle: [now], printed: [said] },
  };
}

export function turned_unit({ theta1, theta2, eps1, eps2 }, given) {
  const [a, b, p, q] = [theta1, theta2, eps1, eps2].map(x => x * radian), { shares } = given.constant;
  const u = direction(a, b), whole = norm([p, q]), metric = norm([p, Math.sin(a) * q]);
  const angle = shares.map(s => between(u, direction(a + s * p, b + s * q))), length = [0];
  shares.slice(1).forEach((end, k) => {
    const start = shares[k];
    let sum = 0;
    NODES.forEach((node, i) => { sum += WEIGHTS[i] * norm([p, Math.sin(a + (start + node * (end - start)) * p) * q]); });
    length.push(length[k] + (end - start) * sum);
  });
  const found = { angle, length, metric: shares.map(s => s * metric), norm: shares.map(s => s * whole) };
  for (const name in found) found[name] = found[name].map(x => x / radian);
  const last = Object.fromEntries(Object.entries(found).map(([name, x]) => [name, [x.at(-1)]]));
  const excess = (last.angle[0] - last.metric[0]) * radian;
  return {
    ...scene([a, b, p, q], given),
    curve: { share: shares, ...found },
    last: { share: [1], ...last },
    scalar: { ...last, says: [Math.abs(excess) < 1e-3 ? "as much as" : excess > 0 ? "more than" : "less than"] },
  };
}
