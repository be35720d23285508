/** The program of the thread in which the module of `directory.people` runs. */
import { parentPort, workerData } from 'node:worker_threads'
import { type ModulePlan, serveModule } from './serve-module.ts'

if (parentPort !== null) serveModule(parentPort, workerData as ModulePlan)
