// Twins of ntklib/book/explorables/points.py: tangent kernels and condition numbers of a few points that the reader drags.
// A kernel entry is one function of an angle, which ntklib has tabulated as a Chebyshev series on [0, π] for every depth.

const radian = Math.PI / 180, INFINITE = 1e9;
const kappaOf = values => {
  const low = Math.min(...values), high = Math.max(...values);
  return high < INFINITE * low ? high / low : Infinity;
};
const finite = x => Number.isFinite(x) ? x : null;
const scalar = x => [x === Infinity ? "∞" : x];

function series(terms, theta) {                 // Clenshaw
  const x = 2 * theta / Math.PI - 1;
  let now = 0, before = 0;
  for (let k = terms.length - 1; k > 0; k--) {
    const next = terms[k] + 2 * x * now - before;
    before = now; now = next;
  }
  return terms[0] + x * now - before;
}

export function eigenvalues(matrix) {           // of a small symmetric matrix, by Jacobi's rotations
  const A = matrix.map(row => [...row]), n = A.length;
  for (let sweep = 0; sweep < 30; sweep++) {
    let off = 0, size = 0;
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) { size += A[i][j] ** 2; if (i !== j) off += A[i][j] ** 2; }
    if (off <= 1e-34 * size) break;
    for (let p = 0; p < n; p++) for (let q = p + 1; q < n; q++) {
      if (A[p][q] === 0) continue;
      const t = (A[q][q] - A[p][p]) / (2 * A[p][q]), s = (t < 0 ? -1 : 1) / (Math.abs(t) + Math.hypot(1, t));
      const c = 1 / Math.hypot(1, s), d = s * c;
      for (let k = 0; k < n; k++) { const x = A[k][p], y = A[k][q]; A[k][p] = c * x - d * y; A[k][q] = d * x + c * y; }
      for (let k = 0; k < n; k++) { const x = A[p][k], y = A[q][k]; A[p][k] = c * x - d * y; A[q][k] = d * x + c * y; }
    }
  }
  return A.map((row, i) => row[i]);
}

const dot = (u, v) => u.reduce((sum, a, k) => sum + a * v[k], 0);
const length = u => Math.sqrt(dot(u, u));
const angle = (u, v) => 2 * Math.atan2(length(u.map((a, k) => a - v[k])), length(u.map((a, k) => a + v[k])));
const symmetric = (n, diagonal, entry) => {
  const A = Array.from({ length: n }, () => Array(n).fill(diagonal));
  for (let i = 0; i < n; i++) for (let j = 0; j < i; j++) A[i][j] = A[j][i] = entry(i, j);
  return A;
};
const kappas = (angles, tables) => tables.map(terms => kappaOf(eigenvalues(symmetric(angles.length, 1, (i, j) => 1 - series(terms, angles[i][j])))));

export function circle_points({ depth, ...state }, { all, constant }) {
  const turns = Object.values(state), X = turns.map(a => [Math.cos(a * radian), Math.sin(a * radian)]);
  const angles = symmetric(6, 0, (i, j) => angle(X[i], X[j])), kappa = kappas(angles, all);
  let near = [0, 1];
  for (let i = 0; i < X.length; i++) for (let j = i + 1; j < X.length; j++) if (angles[i][j] < angles[near[0]][near[1]] - 1e-9) near = [i, j];
  const closest = angles[near[0]][near[1]], floor = all.map(terms => { const lost = series(terms, closest); return lost > 2 / INFINITE ? (2 - lost) / lost : Infinity; });
  const from = turns[near[0]], by = ((turns[near[1]] - from + 540) % 360) - 180;
  const arc = constant.steps.map(s => (from + s * by) * radian);
  return {
    points: { x: X.map(u => u[0]), y: X.map(u => u[1]), name: constant.names },
    arc: { x: arc.map(Math.cos), y: arc.map(Math.sin), order: constant.order },
    curve: { L: constant.depths, kappa: kappa.map(finite), floor: floor.map(finite), infinite: kappa.map(k => k === Infinity ? 1 : null) },
    now: { L: [depth], kappa: [finite(kappa[depth - 1])], floor: [finite(floor[depth - 1])] },
    scalar: { closest: [closest / radian], kappa: scalar(kappa[depth - 1]), floor: scalar(floor[depth - 1]) },
  };
}

function beside([x, y], u, v, other) {          // an arc's label: away from the third point, farther off beside a short arc
  if (x === null) return [null, null];
  const across = [u[1] - v[1], v[0] - u[0]], size = Math.hypot(...across);
  const side = (x - other[0]) * across[0] + (y - other[1]) * across[1] >= 0 ? 1 : -1;
  const by = side * (0.12 + 0.45 * Math.max(0, 1 - 2.5 * size)) / Math.max(size, 1e-9);
  return [x + by * across[0], y + by * across[1]];
}

export function sphere_points({ depth, ...state }, { all, first, constant }) {
  const at = Object.values(state).map(a => a * radian);
  const X = [0, 1, 2].map(i => {
    const [longitude, latitude] = at.slice(2 * i);
    return [Math.cos(latitude) * Math.sin(longitude), Math.sin(latitude), Math.cos(latitude) * Math.cos(longitude)];
  });
  const angles = symmetric(3, 0, (i, j) => angle(X[i], X[j])), linear = kappaOf(eigenvalues(symmetric(3, 1, (i, j) => dot(X[i], X[j]))));
  const relu = [linear, ...kappas(angles, all)], frozen = [linear, ...kappas(angles, first)];
  const pairs = [[0, 1], [0, 2], [1, 2]], middle = X[0].map((_, k) => (X[0][k] + X[1][k] + X[2][k]) / 3);
  const along = ([i, j], s) => {
    const w = X[i].map((a, k) => (1 - s) * a + s * X[j][k]), r = length(w);
    return r < 1e-9 ? [null, null] : [w[0] / r, w[1] / r];
  };
  const arcs = pairs.flatMap(p => constant.steps.map(s => along(p, s)));
  const outwards = ([x, y], by) => {
    const dx = x - middle[0], dy = y - middle[1], r = Math.max(Math.hypot(dx, dy), 1e-9);
    return x === null ? [null, null] : [x + by * dx / r, y + by * dy / r];
  };
  const names = X.map(u => outwards(u, 0.19)), labels = pairs.map(([i, j], k) => beside(along([i, j], 0.5), X[i], X[j], X[2 - k]));
  const gain = linear / relu[depth];
  return {
    grid: constant.grid,
    points: { x: X.map(u => u[0]), y: X.map(u => u[1]), name: constant.names, name_x: names.map(p => p[0]), name_y: names.map(p => p[1]) },
    arcs: { x: arcs.map(p => p[0]), y: arcs.map(p => p[1]), pair: constant.pair, order: constant.order },
    labels: { x: labels.map(p => p[0]), y: labels.map(p => p[1]), degrees: pairs.map(([i, j]) => angles[i][j] / radian) },
    curve: { L: constant.depths, linear: relu.map(() => finite(linear)), all: relu.map(finite), first: frozen.map(finite) },
    now: { L: [depth], linear: [finite(linear)], all: [finite(relu[depth])], first: [finite(frozen[depth])] },
    scalar: {
      linear: scalar(linear), all: scalar(relu[depth]), first: scalar(frozen[depth]),
      says: [relu[depth] === Infinity ? "two points coincide" : Math.abs(gain - 1) < 1e-6 ? "no change" : gain > 1 ? "ReLU is better" : "ReLU is worse"],
    },
  };
}
