import type { Configuration } from '../../src/operate/settings/configuration.ts'

/** No delays after failures: for files that fail on purpose, many times, from one address (C6.3.5). */
export const patientGuessing = (configuration: Configuration): Configuration => {
  const patient = { free: 1_000_000, delay: 0, longest: 0 }
  const { identity } = configuration
  const guessing = {
    ...identity.guessing,
    attempts: patient,
    networks: patient,
    accounts: { ...patient, waiting: 1000 },
  }
  return { ...configuration, identity: { ...identity, guessing } }
}
