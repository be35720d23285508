/** CSV for spreadsheets and programs (RFC 4180). */

/** Where a cell begins with one of these, a spreadsheet reads it as a formula, also behind a tab or a line end. */
const FORMULA = /^[=+\-@\t\r\n]/
/** Some spreadsheets divide cells at `;` or a tab, so a cell that holds one is quoted too. */
const QUOTED = /[",;\t\r\n]|^ | $/

function cell(value: string | number | undefined): string {
  const text = typeof value === 'string' ? value : String(value ?? '')
  // A number alone in its cell is no formula, and a program must be able to read it.
  const harmless = typeof value === 'string' && FORMULA.test(text) ? `'${text}` : text
  return QUOTED.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}

/**
 * One line with its end (CRLF). An undefined cell is empty. A text that a spreadsheet would carry out as a formula
 * (C14.5) gets a `'` before it; numbers don't.
 */
export const csvLine = (cells: readonly (string | number | undefined)[]): string =>
  `${cells.map(cell).join(',')}\r\n`
