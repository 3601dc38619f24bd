/**
 * A storage adapter of somebody else, tested with the contracts.
 */
import * as StorageMemory from "@device-cloud/storage-memory"
import { suites } from "@device-cloud/testing/contracts"

suites("memory", StorageMemory.layer)
