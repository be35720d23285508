/**
 * Property tests try the same inputs in every run, so that a run tells of the change and not of its luck. New inputs are
 * looked for on purpose: `PROPERTY_SEED=random npm test`, or a number to see what another run saw. `PROPERTY_TIMES` as
 * many are tried where a test says so.
 */
import fc from 'fast-check'

const given = process.env['PROPERTY_SEED'] ?? '20261120'
if (given !== 'random') fc.configureGlobal({ seed: Number(given) })

/** Times as many inputs as in a test run; `npm run prove properties` sets more. */
export const propertyTimes = Number(process.env['PROPERTY_TIMES'] ?? 1)
