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

// Text of an element, set only where it is another: the browser lays out again what is set.
function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

function setHidden(target, isHidden) {
  if (target.hidden !== isHidden) target.hidden = isHidden;
}

// A colour of the style sheet, '#rrggbb', as a pixel of a picture; over another to a share.
function pixelOf(colour, over, share) {
  const parts = [1, 3, 5].map((at) => {
    const part = parseInt(colour.slice(at, at + 2), 16);
    return over === undefined ? part : Math.round(part * share + parseInt(over.slice(at, at + 2), 16) * (1 - share));
  });
  return (255 << 24 | parts[2] << 16 | parts[1] << 8 | parts[0]) >>> 0;
}

function svgElement(tag, attributes) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// A canvas as large as its box, in the pixels of the screen; drawn in those of the style sheet.
function fitCanvas(canvas, height) {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.max(60, canvas.parentElement.clientWidth);
  if (canvas.style.height !== `${height}px`) canvas.style.height = `${height}px`;
  sizeCanvas(canvas, width * ratio, height * ratio);
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height, ratio };
}

// Setting a size clears a canvas and takes time, so only another size is set.
function sizeCanvas(canvas, width, height) {
  if (canvas.width !== Math.round(width)) canvas.width = Math.round(width);
  if (canvas.height !== Math.round(height)) canvas.height = Math.round(height);
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
