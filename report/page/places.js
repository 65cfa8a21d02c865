// Where the bytes of a run lie on the memory map, and back: by address, or a row for each segment.

const MAP = { height: 440, rows: 22, rowGap: 4, segmentRow: 18, label: 74, segmentLabel: 150, axis: 20 };

// All ranges that the run ever held, one after the other, broken into rows of equal bytes.
class AddressPlaces {
  constructor(run, width) {
    this.ranges = run.ranges;
    this.left = MAP.label;
    this.top = MAP.axis;
    this.width = Math.max(20, width - this.left - 2);
    const last = this.ranges[this.ranges.length - 1];
    this.total = last === undefined ? 1 : last.offset + last.end - last.address;
    this.rowBytes = binaryStep(this.total / MAP.rows);
    this.rowCount = Math.max(1, Math.ceil(this.total / this.rowBytes));
    this.rowHeight = Math.min(40, (MAP.height - this.top) / this.rowCount);
    this.height = this.top + this.rowCount * this.rowHeight;
  }

  // Part of a row that is not beyond the last byte.
  rowShare(row) {
    return Math.min(1, (this.total - row * this.rowBytes) / this.rowBytes);
  }

  offsetOf(address) {
    const range = this.ranges[lastAtOrBelow(this.ranges, address, (one) => one.address)];
    return range === undefined ? 0 : range.offset + (address - range.address);
  }

  // Visits the pieces of a range: row, and from where to where in it, as shares of its width.
  eachPiece(address, end, visit) {
    let from = this.offsetOf(address);
    const to = from + (end - address);
    for (let row = Math.floor(from / this.rowBytes); from < to; row++) {
      const until = Math.min(to, (row + 1) * this.rowBytes);
      visit(row, from / this.rowBytes - row, until / this.rowBytes - row);
      from = until;
    }
  }

  addressAt(row, share) {
    const offset = (row + share) * this.rowBytes;
    if (row < 0 || offset >= this.total) return undefined;
    const range = this.ranges[lastAtOrBelow(this.ranges, offset, (one) => one.offset)];
    return Math.floor(range.address + (offset - range.offset));
  }

  rowLabel(row) {
    return stepText(row * this.rowBytes);
  }

  axisLabel(share) {
    return share === 0 ? '0' : `+${stepText(share * this.rowBytes)}`;
  }
}

// A row for each segment held now, by address, each as wide as the map: the label says how large it is.
class SegmentPlaces {
  constructor(state, width) {
    this.segments = state.segments;
    this.left = Math.min(MAP.segmentLabel, width / 3);
    this.top = MAP.axis;
    this.width = Math.max(20, width - this.left - 2);
    this.rowHeight = MAP.segmentRow;
    this.rowCount = this.segments.length;
    this.height = this.top + this.rowCount * this.rowHeight;
  }

  rowShare() {
    return 1;
  }

  eachPiece(address, end, visit) {
    const row = lastAtOrBelow(this.segments, address, (one) => one.address);
    const segment = this.segments[row];
    if (segment === undefined || address >= segment.end) return;
    const bytes = segment.end - segment.address;
    visit(row, (address - segment.address) / bytes, (end - segment.address) / bytes);
  }

  addressAt(row, share) {
    const segment = this.segments[row];
    return segment === undefined ? undefined : Math.floor(segment.address + share * (segment.end - segment.address));
  }

  rowLabel(row) {
    const segment = this.segments[row];
    const bytes = segment.end - segment.address;
    return `${stepText(bytes)}, ${percentText(segment.free, bytes)} free`;
  }

  axisLabel(share) {
    return `${share * 100}%`;
  }
}
