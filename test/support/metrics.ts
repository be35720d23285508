/** Every series of Postern's own that `/metrics` shows now, by name and labels as they are printed. */
export async function seriesOf({
  adminUrl,
}: {
  readonly adminUrl: string
}): Promise<ReadonlyMap<string, number>> {
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
