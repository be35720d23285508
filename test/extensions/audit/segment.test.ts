import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { expect, it, onTestFinished, vi } from 'vitest'
import { OpenSegment } from '../../../src/extensions/audit/format/segment.ts'
import { dataFolder } from '../../support/data-folder.ts'

it('C12.4.2 both files of a segment are synced side by side', async () => {
  const folder = await dataFolder()
  const segment = await OpenSegment.open({ folder, writer: 'w', day: '2026-11-22', number: 1 }, true)
  segment.append(Buffer.from('{}\n'), Buffer.from('{}\n'))
  const order: string[] = []
  const { fdatasync, fdatasyncSync } = fs
  const spies = [
    vi.spyOn(fs, 'fdatasync').mockImplementation((descriptor, done) => {
      order.push('values begin')
      fdatasync(descriptor, (error) => {
        order.push('values end')
        done(error)
      })
    }),
    vi.spyOn(fs, 'fdatasyncSync').mockImplementation((descriptor) => {
      order.push('lines')
      fdatasyncSync(descriptor)
    }),
  ]
  const restore = (): void => {
    for (const spy of spies) spy.mockRestore()
    syncBuiltinESMExports()
  }
  onTestFinished(restore)
  syncBuiltinESMExports()
  await segment.sync()
  restore()
  segment.close()
  expect(order).toEqual(['values begin', 'lines', 'values end'])
})
