/** Runs before each test file of `npm run prove mutation`: which mutant lives, and which ones the file meets. */
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect } from 'vitest'

const folder = process.env['POSTERN_MUTATION'] ?? ''
const alive = Number(readFileSync(join(folder, 'alive'), 'utf8'))
const met = new Set<number>()

const isMutant = (id: number): boolean => {
  met.add(id)
  return id === alive
}
Object.assign(globalThis, { __isMutant: isMutant })

afterAll(() => {
  const { testPath } = expect.getState()
  if (alive === 0) appendFileSync(join(folder, 'met'), `${JSON.stringify([testPath, [...met]])}\n`)
})
