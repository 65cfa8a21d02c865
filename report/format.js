// Numbers and names for people, in the words of the command line, and small helpers for the page.

function bytesText(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  const units = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  let value = bytes / 1024;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${value.toFixed(2)} ${units[unit]}`;
}

// A round number of bytes at or above the given ones, for an axis.
function stepText(bytes) {
  return bytesText(bytes).replace(/(\.\d*?)0+ /, '$1 ').replace('. ', ' ');
}

const COUNT_FORM = new Intl.NumberFormat('en-US');

function countText(count) {
  return COUNT_FORM.format(count);
}

function percentText(part, whole) {
  return whole > 0 ? `${(100 * part / whole).toFixed(1)}%` : '–';
}

function timeText(microseconds) {
  return `${(microseconds / 1e6).toFixed(microseconds < 1e7 ? 4 : 3)} s`;
}

function addressText(address) {
  return `0x${address.toString(16)}`;
}

function byId(id) {
  return document.getElementById(id);
}

// An element with text; text never becomes markup.
function element(tag, text, name) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (name !== undefined) made.className = name;
  return made;
}

function svgElement(tag, attributes) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// A pure function of the page's colours: what the style sheet says for this scheme.
function styleColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// A canvas as large as its box, in the pixels of the screen; drawn in those of the style sheet.
function fitCanvas(canvas, height) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.parentElement.clientWidth;
  canvas.style.height = `${height}px`;
  if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
  if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

// A box of lines beside the pointer, inside the window.
function showTip(lines, x, y) {
  const tip = byId('tip');
  tip.replaceChildren(...lines.map((line, i) => element('div', line, i === 0 ? 'tip-head' : undefined)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 14 + box.width > window.innerWidth ? x - 14 - box.width : x + 14;
  const top = y + 14 + box.height > window.innerHeight ? y - 14 - box.height : y + 14;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}

function hideTip() {
  byId('tip').hidden = true;
}
