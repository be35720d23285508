import { readFileSync } from 'node:fs'

interface Package {
  readonly version: string
  readonly engines: { readonly node: string }
}

const { version, engines } = JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
) as Package

/** The version in package.json. */
export const VERSION = version

/** The oldest Node that will do, `24.9`: package.json says `>=24.9`. */
export const OLDEST_NODE = engines.node.replace(/^>=/, '')

/** The message for an older Node: which version is needed, and the command that brings one along. */
export const tooOld = (node: string): string =>
  `postern: needs Node ${OLDEST_NODE} or newer, and this is Node ${node}. npx brings a newer one along:\n  npx -p node@26 -p ./postern-${VERSION}.tgz postern\n`

const numbersOf = (text: string): readonly number[] => text.split('.').map(Number)

/** Whether a version of Node, such as `26.10.0`, is new enough. */
export function isNewEnough(node: string, oldest = OLDEST_NODE): boolean {
  const [[major = 0, minor = 0], [leastMajor = 0, leastMinor = 0]] = [numbersOf(node), numbersOf(oldest)]
  return major > leastMajor || (major === leastMajor && minor >= leastMinor)
}
