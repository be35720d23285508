import { expect, it } from 'vitest'
import { abandonConnections } from '../support/abandoned.ts'
import { dataFolder } from '../support/data-folder.ts'

const MIB = 1024 ** 2

/** Ten thousand of them: `npm run prove abandoned-connections`. */
it('T5.3 of 600 connections that were opened and left, in every state, nothing remains', async () => {
  // Descriptors are waited for: it ends only when none is left.
  expect((await abandonConnections(600, await dataFolder())).added).toBeLessThan(2 * MIB)
})
