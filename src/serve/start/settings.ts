import type { Extension } from '../../operate/hooks/extension.ts'
import { settingsWith } from '../../operate/settings/settings.ts'
import * as extensions from './extensions.ts'

export const EXTENSIONS: readonly Extension[] = Object.values<Extension>(extensions)

/** Reads and checks configuration files, with the keys of all extensions. */
export const SETTINGS = settingsWith(EXTENSIONS.flatMap(({ settings }) => settings ?? []))
