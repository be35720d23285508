import { expect } from 'vitest'

interface Observed {
  readonly adminUrl: string
}

/** Every series of Postern's own that `/metrics` shows now, by name and labels as they are printed. */
export async function seriesOf({ adminUrl }: Observed): Promise<ReadonlyMap<string, number>> {
  const response = await fetch(`${adminUrl}/metrics`)
  return readSeries(await response.text())
}

export const readSeries = (text: string): ReadonlyMap<string, number> =>
  new Map(
    text
      .split('\n')
      .filter((line) => line.startsWith('postern_'))
      .map((line) => {
        const space = line.lastIndexOf(' ')
        return [line.slice(0, space), Number(line.slice(space))] as const
      }),
  )

/** The value of a series; its name is without `postern_`. Undefined if `/metrics` does not show it. */
export const valueOf = async (of: Observed, series: string): Promise<number | undefined> =>
  (await seriesOf(of)).get(`postern_${series}`)

/** Waits, at most half a minute, until a series has a value. */
export const becomes = (of: Observed, series: string, value: number): Promise<unknown> =>
  expect.poll(() => valueOf(of, series), { timeout: 30_000 }).toBe(value)
