// Twin of ntklib/book/explorables/boundaries.py: the best network that bends where the reader dragged its bends.

const dot = (u, v) => u.reduce((sum, a, i) => sum + a * v[i], 0);

function projection(columns, y) {               // of y onto their span: Gram-Schmidt, twice for its digits; a column that adds nothing is left out
  const basis = [], fit = y.map(() => 0);
  for (const column of columns) {
    let q = column;
    const size = Math.sqrt(dot(q, q));
    for (let pass = 0; pass < 2; pass++) for (const e of basis) { const along = dot(e, q); q = q.map((a, i) => a - along * e[i]); }
    const rest = Math.sqrt(dot(q, q));
    if (rest <= 1e-9 * size) continue;
    q = q.map(a => a / rest);
    basis.push(q);
    const along = dot(q, y);
    q.forEach((a, i) => { fit[i] += along * a; });
  }
  return fit;
}

export function fit_by_hand({ target_name, ...places }, { x, targets, even, best }) {
  const y = targets[target_name], bends = Object.values(places), step = x[1] - x[0], last = x.length - 1;
  const fit = projection([x.map(() => 1), x, ...bends.map(k => x.map(a => Math.max(a - k, 0)))], y);
  const at = bends.map(k => Math.round((k - x[0]) / step));
  return {
    curve: { x, goal: y, fit },
    bends: { x: bends, y: at.map(i => fit[i]), change: at.map(i => i > 0 && i < last ? (fit[i + 1] - 2 * fit[i] + fit[i - 1]) / step : 0), name: [..."12345"] },
    scalar: { error: [Math.sqrt(y.reduce((sum, a, i) => sum + (a - fit[i]) ** 2, 0) / y.length)], even: [even[target_name]], best: [best[target_name]] },
  };
}
