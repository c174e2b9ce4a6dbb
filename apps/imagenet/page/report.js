/* report.js - values of the curves where the pointer is
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
'use strict';
(function () {
  const SVG = 'http://www.w3.org/2000/svg';
  const charts = JSON.parse(document.getElementById('values').textContent);

  // Where on its axis a value is, 0..1.
  function place(limits, log, v) {
    const at = log ? Math.log10(v) : v;
    return (at - limits[0]) / (limits[1] - limits[0]);
  }

  // The index of the number of a rising list that is nearest to v.
  function nearest(list, v) {
    let low = 0, high = list.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (list[middle] < v) low = middle; else high = middle;
    }
    return v - list[low] <= list[high] - v ? low : high;
  }

  function format(v) {
    if (v === null) return '–';
    const size = Math.abs(v);
    if (size !== 0 && (size < 1e-3 || size >= 1e7)) return v.toExponential(3);
    return String(Number(v.toPrecision(5)));
  }

  function add(parent, tag, name, text) {
    const e = document.createElement(tag);
    e.className = name;
    if (text !== undefined) e.textContent = text;
    parent.appendChild(e);
    return e;
  }

  function setUp(chart) {
    const figure = document.getElementById(chart.id);
    const svg = figure && figure.querySelector('svg.chart');
    if (!svg) return;
    const [left, top, right, bottom] = chart.box;
    const all = chart.series.map(s => s.at)
      .reduce((a, b) => (b.length > a.length ? b : a));
    let line = null, tip = null, focus = -1;

    function hide() {
      if (line) line.remove();
      if (tip) tip.remove();
      line = tip = null;
    }

    // Next to the line, on the side that has room.
    function placeTip(at) {
      const scale = svg.clientWidth / svg.viewBox.baseVal.width;
      const left = svg.offsetLeft || 16;
      let px = left + at * scale + 14;
      if (px + tip.offsetWidth > figure.clientWidth)
        px = left + at * scale - tip.offsetWidth - 14;
      tip.style.left = Math.max(4, px) + 'px';
      tip.style.top =
        figure.clientHeight - svg.clientHeight + top * scale + 'px';
    }

    function drawLine(at) {
      line = document.createElementNS(SVG, 'line');
      line.setAttribute('class', 'cursor');
      line.setAttribute('x1', at);
      line.setAttribute('x2', at);
      line.setAttribute('y1', top);
      line.setAttribute('y2', bottom);
      svg.appendChild(line);
    }

    // x: of the axis, an epoch
    function show(x) {
      hide();
      const at = left + place(chart.x, false, x) * (right - left);
      drawLine(at);
      tip = add(figure, 'div', 'tip');
      add(tip, 'b', '', 'epoch ' + format(x));
      const range = chart.x[1] - chart.x[0];
      for (const s of chart.series) {
        const i = nearest(s.at, x);
        if (x > s.at[i] + range / 20 && i === s.at.length - 1) continue;
        const row = add(tip, 'div', '');
        add(row, 'i', 'key c' + s.colour);
        add(row, 'span', '', s.run ? s.run + ' ' + s.label : s.label);
        add(row, 'b', '', format(s.value[i]));
      }
      placeTip(at);
    }

    svg.addEventListener('pointermove', e => {
      const box = svg.getBoundingClientRect();
      const at = (e.clientX - box.left) / box.width *
        svg.viewBox.baseVal.width;
      const share = Math.min(1, Math.max(0, (at - left) / (right - left)));
      const x = chart.x[0] + share * (chart.x[1] - chart.x[0]);
      focus = nearest(all, x);
      show(all[focus]);
    });
    svg.addEventListener('pointerleave', hide);
    svg.addEventListener('blur', hide);
    svg.addEventListener('keydown', e => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
      if (e.key === 'Escape') hide();
      if (!by) return;
      e.preventDefault();
      focus = focus < 0 ? all.length - 1 : focus + by;
      focus = Math.min(all.length - 1, Math.max(0, focus));
      show(all[focus]);
    });
  }

  charts.forEach(setUp);
}());
