/** Code of the operator's as a backend, alone or around one that forwards (C8.1, C8.9). */
import type { Extension } from '../../operate/hooks/extension.ts'
import { type ModuleConfig, moduleSchema } from './schema.ts'

/** The core has read the section by `moduleSchema`. */
const asModule = (config: object): ModuleConfig => config as ModuleConfig

export const extension = {
  settings: {
    backends: {
      module: {
        schema: moduleSchema,
        open: async (name, config, problems, dependencies, under) => {
          const { openUserModule } = await import('./open-module.ts')
          return openUserModule(name, asModule(config), problems, dependencies, under)
        },
        contents: async (config, when) => {
          const { contentsOf } = await import('../../base/config/modules/import-file.ts')
          return contentsOf(asModule(config), when)
        },
      },
    },
  },
} as const satisfies Extension
