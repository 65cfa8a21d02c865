// Tables that sort by the column whose head is pressed.

function sortValue(row, column) {
  const cell = row.cells[column];
  if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
  return column === 0 ? cell.textContent : -Infinity;
}

function sortTable(table, column, isDown) {
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  rows.sort((a, b) => (isDown ? -1 : 1) * compare(sortValue(a, column), sortValue(b, column)));
  body.replaceChildren(...rows);
}

function makeSortable(table) {
  Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
    const button = element('button', head.textContent, 'sort');
    button.type = 'button';
    button.addEventListener('click', () => {
      const isDown = head.getAttribute('aria-sort') !== 'descending' && column > 0 ||
        head.getAttribute('aria-sort') === 'ascending';
      for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
      head.setAttribute('aria-sort', isDown ? 'descending' : 'ascending');
      sortTable(table, column, isDown);
    });
    head.replaceChildren(button);
  });
}
