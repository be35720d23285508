interface Lane {
  /** Whose turn it is, and those behind. */
  count: number
  /** Settles when the last in line is through. */
  tail: Promise<unknown>
}

/** Lets those of one key through one after the other, in order. A key that nobody is at takes no room. */
export class OneAtATime {
  readonly #lanes = new Map<string, Lane>()

  /** How many of the key are in line, the one whose turn it is included. */
  inLine(key: string): number {
    return this.#lanes.get(key)?.count ?? 0
  }

  /** Resolves when the turn has come, with what ends it. To be called once. */
  async enter(key: string): Promise<() => void> {
    const lane = this.#laneOf(key)
    const before = lane.tail
    const { promise, resolve } = Promise.withResolvers<undefined>()
    lane.tail = promise
    lane.count += 1
    await before
    return () => {
      lane.count -= 1
      if (lane.count === 0) this.#lanes.delete(key)
      resolve(undefined)
    }
  }

  #laneOf(key: string): Lane {
    const known = this.#lanes.get(key)
    if (known !== undefined) return known
    const lane: Lane = { count: 0, tail: Promise.resolve() }
    this.#lanes.set(key, lane)
    return lane
  }
}
