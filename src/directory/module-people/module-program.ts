/** The program of the thread in which the module of `directory.people` runs. */
import { workerData } from 'node:worker_threads'
import { serveModule, type ThreadData } from './serve-module.ts'

const { plan, port } = workerData as ThreadData
serveModule(port, plan)
