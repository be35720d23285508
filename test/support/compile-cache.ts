/**
 * A service in this process starts threads, and each compiles its modules anew where the process has no compile cache
 * (src/kernel/beside.ts). `postern` turns it on itself; in the process of the tests this does, and nobody waits for it.
 */
import { enableCompileCache } from 'node:module'

enableCompileCache()
