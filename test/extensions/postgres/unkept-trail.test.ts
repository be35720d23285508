import { join } from 'node:path'
import { expect, it } from 'vitest'
import { copyIntoShared } from '../../../src/extensions/postgres/store-copy.ts'
import type { CommandParts } from '../../../src/operate/hooks/added-command.ts'
import { StoreError } from '../../../src/state/stores/link/store-error.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { giveKey } from '../../support/ready-key.ts'

it('store copy takes over no data folder with a trail where no extension keeps one', async () => {
  const data = await dataFolder()
  await giveKey(data)
  const asked: string[] = []
  const parts = {
    read: () => ({ file: 'n.yaml', configuration: { store: { kind: 'postgres', seal: [] }, issuers: [] } }),
    recorded: (_: unknown, __: unknown, work: () => Promise<number>) => work(),
    hasService: () => false,
    unkeptTrail: (folder: string) => {
      asked.push(folder)
      return 'it has a trail'
    },
  }
  const values = { from: `sqlite:${join(data, 'postern.sqlite')}` }
  const copying = async () => copyIntoShared({ values, positionals: [] }, parts as unknown as CommandParts)
  await expect(copying()).rejects.toThrow(new StoreError('it has a trail'))
  expect(asked).toEqual([data])
})
