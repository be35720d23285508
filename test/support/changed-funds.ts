import type { Configuration } from '../../src/operate/settings/configuration.ts'

export type HttpConfig = Extract<Configuration['backends'][string], { kind: 'http' }>

/** The backend `funds` of config/upstream.yaml. Throws TypeError if it is not there. */
export function fundsOf({ backends: { funds } }: Pick<Configuration, 'backends'>): HttpConfig {
  if (funds?.kind !== 'http') throw new TypeError('config/upstream.yaml has an http backend "funds"')
  return funds
}

/** Replaces the backend `funds` of config/upstream.yaml. */
export const replaceFunds =
  (change: (funds: HttpConfig) => HttpConfig) =>
  (loaded: Configuration): Configuration => ({
    ...loaded,
    backends: { ...loaded.backends, funds: change(fundsOf(loaded)) },
  })

/** Changes the backend `funds` of config/upstream.yaml. */
export const withFunds = (changes: Partial<HttpConfig>): ((loaded: Configuration) => Configuration) =>
  replaceFunds((funds) => ({ ...funds, ...changes }))
