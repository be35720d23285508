/**
 * Property tests try the same inputs in every run, so that a run tells of the change and not of its luck. New inputs are
 * looked for on purpose: `PROPERTY_SEED=random npm test`, or a number to see what another run saw.
 */
import fc from 'fast-check'

const given = process.env['PROPERTY_SEED'] ?? '20261120'
if (given !== 'random') fc.configureGlobal({ seed: Number(given) })
