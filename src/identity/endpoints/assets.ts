import type { Answer } from '../../contracts/exchange.ts'
import { Fault } from '../../kernel/faults.ts'
import type { Arrived } from '../context.ts'
import type { StepDependencies, Step } from '../endpoint.ts'
import type { Asset } from '../pages/theme.ts'

/** Pages name an asset with its content's hash, so that it may be kept; a day, since nothing forbids to ask without it. */
const serve =
  (pick: (dependencies: StepDependencies) => Asset | undefined): Step<Arrived, Answer> =>
  (_, dependencies) => {
    const asset = pick(dependencies)
    if (asset === undefined) throw new Fault('outside')
    return {
      status: 200,
      headers: {
        'Content-Type': asset.contentType,
        'Cache-Control': 'public, max-age=86400',
        'X-Content-Type-Options': 'nosniff',
        // An SVG opened by its address is a document, and may hold a script.
        'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'",
        'Cross-Origin-Resource-Policy': 'same-origin',
      },
      body: asset.bytes,
    }
  }

export const stylesheet: Step<Arrived, Answer> = serve(({ theme }) => theme.stylesheet)
export const logo: Step<Arrived, Answer> = serve(({ theme }) => theme.logo)
