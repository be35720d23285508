/** How large tests of size are: in a run as small as still shows the rule, under `POSTERN_TEST_LONG=1` in full. */
export const isLong = process.env['POSTERN_TEST_LONG'] === '1'

/** The one size or the other. No case depends on it, and no title but by its number. */
export const sized = (short: number, full: number): number => (isLong ? full : short)
