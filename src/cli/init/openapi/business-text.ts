/** What `init --from` tells where no path has a parameter that it takes for the code of a business. */

const NO_BUSINESS =
  'no path names a business: the service must read it from the header X-Postern-Business, or every business sees the same data'

/** How many names are proposed. */
const MOST_NAMES = 3

/** The first parameter of each path, the most used first. */
function likelyNames(paths: readonly string[]): readonly string[] {
  const uses = new Map<string, number>()
  for (const path of paths) {
    const [, name] = /\{([^{}]+)\}/.exec(path) ?? []
    if (name !== undefined) uses.set(name, (uses.get(name) ?? 0) + 1)
  }
  const byUse = [...uses].toSorted(([, one], [, other]) => other - one)
  return byUse.slice(0, MOST_NAMES).map(([name]) => name)
}

/** @param paths of the operations that have a place in the configuration */
export function noBusinessText(paths: readonly string[]): string {
  const names = likelyNames(paths)
  if (names.length === 0) return NO_BUSINESS
  return `${NO_BUSINESS}. If a parameter is its code, remove the file and start again with --business-parameter NAME (the paths have ${names.join(', ')})`
}
