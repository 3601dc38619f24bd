import { ObjectStoreContract, suites } from "@device-cloud/testing/contracts"
import { sqlite } from "../../../vitest.storages.ts"

suites("SQLite", sqlite)
ObjectStoreContract.suite("SQLite", sqlite)
