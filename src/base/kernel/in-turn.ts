/** Does one work after the other. What one rejects with keeps none from the next. */
export type InTurn = <T>(work: () => Promise<T>) => Promise<T>

export function oneAtATime(): InTurn {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const done = last.then(work)
    last = done.catch(() => undefined)
    return done
  }
}
