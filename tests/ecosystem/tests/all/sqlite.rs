//! SQLite: rusqlite on the pool, sqlx on the island.

use phaseloop::{block_on, spawn_blocking};

#[test]
fn rusqlite_on_the_pool() {
    block_on(async {
        let sum = spawn_blocking(|| {
            let database = rusqlite::Connection::open_in_memory()?;
            database.execute_batch("CREATE TABLE n (v); INSERT INTO n VALUES (20), (22)")?;
            database.query_row("SELECT sum(v) FROM n", [], |row| row.get::<_, i64>(0))
        });
        assert_eq!(sum.await.unwrap().unwrap(), 42);
    });
}

#[test]
fn sqlx_on_the_island() {
    phaseloop::tokio::block_on(async {
        let pool = sqlx::sqlite::SqlitePoolOptions::new()
            .max_connections(1)
            .connect("sqlite::memory:")
            .await
            .unwrap();
        let (sum,): (i64,) = sqlx::query_as("SELECT ?1 + ?2")
            .bind(20)
            .bind(22)
            .fetch_one(&pool)
            .await
            .unwrap();
        assert_eq!(sum, 42);
        pool.close().await;
    });
}
