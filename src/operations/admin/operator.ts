/** Who changes something in a running service, and why: told with every change (C9.3, C12). */
export interface Operator {
  /** As they call themselves: all who have the admin token are equal. */
  readonly by?: string | undefined
  readonly reason?: string | undefined
  /** The address that the order came from, or the signal or file that gave it. */
  readonly via: string
}
