/** Where something is written. */
export interface Place {
  /** As it was named on the command line or by `extends`. */
  readonly file: string
  /** From 1; 0 where there are no lines. */
  readonly line: number
}
