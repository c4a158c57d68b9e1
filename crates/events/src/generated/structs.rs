//! Structs of the kernel's interface.
// Written by `cargo xtask codegen` from tables/. Do not edit.

use super::{flags, structs};
use crate::types::{Cond, Field, Fmt, Int, Mem, Struct, Test};

/// `struct timespec`
pub static S_TIMESPEC: Struct = Struct { name: "timespec", size: 16, fields: &[
    Field{name:"tv_sec",offset:0,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:false,cond:None},
    Field{name:"tv_nsec",offset:8,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct timeval`
pub static S_TIMEVAL: Struct = Struct { name: "timeval", size: 16, fields: &[
    Field{name:"tv_sec",offset:0,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:false,cond:None},
    Field{name:"tv_usec",offset:8,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct itimerval`
pub static S_ITIMERVAL: Struct = Struct { name: "itimerval", size: 32, fields: &[
    Field{name:"it_interval",offset:0,mem:Mem::Struct(&structs::S_TIMEVAL),verbose:false,cond:None},
    Field{name:"it_value",offset:16,mem:Mem::Struct(&structs::S_TIMEVAL),verbose:false,cond:None},
] };
/// `struct itimerspec`
pub static S_ITIMERSPEC: Struct = Struct { name: "itimerspec", size: 32, fields: &[
    Field{name:"it_interval",offset:0,mem:Mem::Struct(&structs::S_TIMESPEC),verbose:false,cond:None},
    Field{name:"it_value",offset:16,mem:Mem::Struct(&structs::S_TIMESPEC),verbose:false,cond:None},
] };
/// `struct timezone`
pub static S_TIMEZONE: Struct = Struct { name: "timezone", size: 8, fields: &[
    Field{name:"tz_minuteswest",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tz_dsttime",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct timex`
pub static S_TIMEX: Struct = Struct { name: "timex", size: 208, fields: &[
    Field{name:"modes",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_ADJTIMEX_MODES)}),verbose:false,cond:None},
    Field{name:"offset",offset:8,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"freq",offset:16,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"maxerror",offset:24,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"esterror",offset:32,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"status",offset:40,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_ADJTIMEX_STATUS)}),verbose:false,cond:None},
    Field{name:"constant",offset:48,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"precision",offset:56,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tolerance",offset:64,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"time",offset:72,mem:Mem::Struct(&structs::S_TIMEVAL),verbose:false,cond:None},
    Field{name:"tick",offset:88,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"ppsfreq",offset:96,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"jitter",offset:104,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"shift",offset:112,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"stabil",offset:120,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"jitcnt",offset:128,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"calcnt",offset:136,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"errcnt",offset:144,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"stbcnt",offset:152,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tai",offset:160,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct stat`
pub static S_STAT: Struct = Struct { name: "stat", size: 144, fields: &[
    Field{name:"st_dev",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dev}),verbose:true,cond:None},
    Field{name:"st_ino",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"st_mode",offset:24,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::ModeType}),verbose:false,cond:None},
    Field{name:"st_nlink",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"st_uid",offset:28,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),verbose:true,cond:None},
    Field{name:"st_gid",offset:32,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),verbose:true,cond:None},
    Field{name:"st_blksize",offset:56,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"st_blocks",offset:64,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"st_size",offset:48,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:2,test:Test::NotFileType(&[8192, 24576])})},
    Field{name:"st_rdev",offset:40,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dev}),verbose:false,cond:Some(Cond{on:2,test:Test::FileType(&[8192, 24576])})},
    Field{name:"st_atime",offset:72,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:true,cond:None},
    Field{name:"st_atime_nsec",offset:80,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"st_mtime",offset:88,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:true,cond:None},
    Field{name:"st_mtime_nsec",offset:96,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"st_ctime",offset:104,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:true,cond:None},
    Field{name:"st_ctime_nsec",offset:112,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
] };
/// `struct stat_aarch64`
pub static S_STAT_AARCH64: Struct = Struct { name: "stat_aarch64", size: 128, fields: &[
    Field{name:"st_dev",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dev}),verbose:true,cond:None},
    Field{name:"st_ino",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"st_mode",offset:16,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::ModeType}),verbose:false,cond:None},
    Field{name:"st_nlink",offset:20,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"st_uid",offset:24,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),verbose:true,cond:None},
    Field{name:"st_gid",offset:28,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),verbose:true,cond:None},
    Field{name:"st_blksize",offset:56,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"st_blocks",offset:64,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"st_size",offset:48,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:2,test:Test::NotFileType(&[8192, 24576])})},
    Field{name:"st_rdev",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dev}),verbose:false,cond:Some(Cond{on:2,test:Test::FileType(&[8192, 24576])})},
    Field{name:"st_atime",offset:72,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:true,cond:None},
    Field{name:"st_atime_nsec",offset:80,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"st_mtime",offset:88,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:true,cond:None},
    Field{name:"st_mtime_nsec",offset:96,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"st_ctime",offset:104,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:true,cond:None},
    Field{name:"st_ctime_nsec",offset:112,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
] };
/// `struct statx_timestamp`
pub static S_STATX_TIMESTAMP: Struct = Struct { name: "statx_timestamp", size: 16, fields: &[
    Field{name:"tv_sec",offset:0,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:false,cond:None},
    Field{name:"tv_nsec",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct statx`
pub static S_STATX: Struct = Struct { name: "statx", size: 256, fields: &[
    Field{name:"stx_mask",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_STATX_MASK)}),verbose:false,cond:None},
    Field{name:"stx_blksize",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"stx_attributes",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_STATX_ATTR)}),verbose:false,cond:None},
    Field{name:"stx_nlink",offset:16,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"stx_uid",offset:20,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),verbose:true,cond:None},
    Field{name:"stx_gid",offset:24,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),verbose:true,cond:None},
    Field{name:"stx_mode",offset:28,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::ModeType}),verbose:false,cond:None},
    Field{name:"stx_ino",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"stx_size",offset:40,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"stx_blocks",offset:48,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"stx_attributes_mask",offset:56,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_STATX_ATTR)}),verbose:true,cond:None},
    Field{name:"stx_atime",offset:64,mem:Mem::Struct(&structs::S_STATX_TIMESTAMP),verbose:true,cond:None},
    Field{name:"stx_btime",offset:80,mem:Mem::Struct(&structs::S_STATX_TIMESTAMP),verbose:true,cond:Some(Cond{on:0,test:Test::Any(0x800)})},
    Field{name:"stx_ctime",offset:96,mem:Mem::Struct(&structs::S_STATX_TIMESTAMP),verbose:true,cond:None},
    Field{name:"stx_mtime",offset:112,mem:Mem::Struct(&structs::S_STATX_TIMESTAMP),verbose:true,cond:None},
    Field{name:"stx_rdev_major",offset:128,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"stx_rdev_minor",offset:132,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"stx_dev_major",offset:136,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"stx_dev_minor",offset:140,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"stx_mnt_id",offset:144,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:true,cond:Some(Cond{on:0,test:Test::Any(0x5000)})},
    Field{name:"stx_dio_mem_align",offset:152,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:true,cond:Some(Cond{on:0,test:Test::Any(0x2000)})},
    Field{name:"stx_dio_offset_align",offset:156,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:true,cond:Some(Cond{on:0,test:Test::Any(0x2000)})},
    Field{name:"stx_subvol",offset:160,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:Some(Cond{on:0,test:Test::Any(0x8000)})},
    Field{name:"stx_atomic_write_unit_min",offset:168,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:true,cond:Some(Cond{on:0,test:Test::Any(0x10000)})},
    Field{name:"stx_atomic_write_unit_max",offset:172,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:true,cond:Some(Cond{on:0,test:Test::Any(0x10000)})},
    Field{name:"stx_atomic_write_segments_max",offset:176,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:true,cond:Some(Cond{on:0,test:Test::Any(0x10000)})},
    Field{name:"stx_dio_read_offset_align",offset:180,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:true,cond:Some(Cond{on:0,test:Test::Any(0x20000)})},
    Field{name:"stx_atomic_write_unit_max_opt",offset:184,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:true,cond:Some(Cond{on:0,test:Test::Any(0x10000)})},
] };
/// `struct fsid`
pub static S_FSID: Struct = Struct { name: "fsid", size: 8, fields: &[
    Field{name:"val",offset:0,mem:Mem::Array(&Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),2),verbose:false,cond:None},
] };
/// `struct statfs`
pub static S_STATFS: Struct = Struct { name: "statfs", size: 120, fields: &[
    Field{name:"f_type",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Enum(&flags::T_FS_TYPE)}),verbose:false,cond:None},
    Field{name:"f_bsize",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"f_blocks",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"f_bfree",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"f_bavail",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"f_files",offset:40,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"f_ffree",offset:48,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"f_fsid",offset:56,mem:Mem::Struct(&structs::S_FSID),verbose:false,cond:None},
    Field{name:"f_namelen",offset:64,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"f_frsize",offset:72,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"f_flags",offset:80,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_STATFS_FLAGS)}),verbose:false,cond:None},
] };
/// `struct sigaction`
pub static S_SIGACTION: Struct = Struct { name: "sigaction", size: 32, fields: &[
    Field{name:"sa_handler",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Handler}),verbose:false,cond:None},
    Field{name:"sa_mask",offset:24,mem:Mem::Sigset(8),verbose:false,cond:None},
    Field{name:"sa_flags",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_SA_FLAGS)}),verbose:false,cond:None},
    Field{name:"sa_restorer",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:Some(Cond{on:2,test:Test::Any(0x4000000)})},
] };
/// `struct stack`
pub static S_STACK: Struct = Struct { name: "stack", size: 24, fields: &[
    Field{name:"ss_sp",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"ss_flags",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_SS_FLAGS)}),verbose:false,cond:None},
    Field{name:"ss_size",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct pollfd`
pub static S_POLLFD: Struct = Struct { name: "pollfd", size: 8, fields: &[
    Field{name:"fd",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"events",offset:4,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Flags(&flags::T_POLL)}),verbose:false,cond:Some(Cond{on:0,test:Test::NoneOf(&[4294967295])})},
    Field{name:"revents",offset:6,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Flags(&flags::T_POLL)}),verbose:false,cond:Some(Cond{on:2,test:Test::NoneOf(&[0])})},
] };
/// `struct pollfd_in`
pub static S_POLLFD_IN: Struct = Struct { name: "pollfd_in", size: 8, fields: &[
    Field{name:"fd",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"events",offset:4,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Flags(&flags::T_POLL)}),verbose:false,cond:Some(Cond{on:0,test:Test::NoneOf(&[4294967295])})},
] };
/// `struct epoll_event`
pub static S_EPOLL_EVENT: Struct = Struct { name: "epoll_event", size: 12, fields: &[
    Field{name:"events",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_EPOLL)}),verbose:false,cond:None},
    Field{name:"data",offset:4,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::EpollData}),verbose:false,cond:None},
] };
/// `struct epoll_event_aarch64`
pub static S_EPOLL_EVENT_AARCH64: Struct = Struct { name: "epoll_event_aarch64", size: 16, fields: &[
    Field{name:"events",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_EPOLL)}),verbose:false,cond:None},
    Field{name:"data",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::EpollData}),verbose:false,cond:None},
] };
/// `struct epoll_params`
pub static S_EPOLL_PARAMS: Struct = Struct { name: "epoll_params", size: 8, fields: &[
    Field{name:"busy_poll_usecs",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"busy_poll_budget",offset:4,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"prefer_busy_poll",offset:6,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct rlimit`
pub static S_RLIMIT: Struct = Struct { name: "rlimit", size: 16, fields: &[
    Field{name:"rlim_cur",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Rlim}),verbose:false,cond:None},
    Field{name:"rlim_max",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Rlim}),verbose:false,cond:None},
] };
/// `struct rlimit64`
pub static S_RLIMIT64: Struct = Struct { name: "rlimit64", size: 16, fields: &[
    Field{name:"rlim_cur",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Rlim}),verbose:false,cond:None},
    Field{name:"rlim_max",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Rlim}),verbose:false,cond:None},
] };
/// `struct rusage`
pub static S_RUSAGE: Struct = Struct { name: "rusage", size: 144, fields: &[
    Field{name:"ru_utime",offset:0,mem:Mem::Struct(&structs::S_TIMEVAL),verbose:false,cond:None},
    Field{name:"ru_stime",offset:16,mem:Mem::Struct(&structs::S_TIMEVAL),verbose:false,cond:None},
    Field{name:"ru_maxrss",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"ru_ixrss",offset:40,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"ru_idrss",offset:48,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"ru_isrss",offset:56,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"ru_minflt",offset:64,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"ru_majflt",offset:72,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"ru_nswap",offset:80,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"ru_inblock",offset:88,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"ru_oublock",offset:96,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"ru_msgsnd",offset:104,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"ru_msgrcv",offset:112,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"ru_nsignals",offset:120,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"ru_nvcsw",offset:128,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"ru_nivcsw",offset:136,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
] };
/// `struct utsname`
pub static S_UTSNAME: Struct = Struct { name: "utsname", size: 390, fields: &[
    Field{name:"sysname",offset:0,mem:Mem::Chars(65),verbose:false,cond:None},
    Field{name:"nodename",offset:65,mem:Mem::Chars(65),verbose:false,cond:None},
    Field{name:"release",offset:130,mem:Mem::Chars(65),verbose:true,cond:None},
    Field{name:"version",offset:195,mem:Mem::Chars(65),verbose:true,cond:None},
    Field{name:"machine",offset:260,mem:Mem::Chars(65),verbose:true,cond:None},
    Field{name:"domainname",offset:325,mem:Mem::Chars(65),verbose:true,cond:None},
] };
/// `struct sysinfo`
pub static S_SYSINFO: Struct = Struct { name: "sysinfo", size: 112, fields: &[
    Field{name:"uptime",offset:0,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"loads",offset:8,mem:Mem::Array(&Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),3),verbose:false,cond:None},
    Field{name:"totalram",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"freeram",offset:40,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"sharedram",offset:48,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"bufferram",offset:56,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"totalswap",offset:64,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"freeswap",offset:72,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"procs",offset:80,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"totalhigh",offset:88,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"freehigh",offset:96,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"mem_unit",offset:104,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct tms`
pub static S_TMS: Struct = Struct { name: "tms", size: 32, fields: &[
    Field{name:"tms_utime",offset:0,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::ClockTicks}),verbose:false,cond:None},
    Field{name:"tms_stime",offset:8,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::ClockTicks}),verbose:false,cond:None},
    Field{name:"tms_cutime",offset:16,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::ClockTicks}),verbose:false,cond:None},
    Field{name:"tms_cstime",offset:24,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::ClockTicks}),verbose:false,cond:None},
] };
/// `struct winsize`
pub static S_WINSIZE: Struct = Struct { name: "winsize", size: 8, fields: &[
    Field{name:"ws_row",offset:0,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"ws_col",offset:2,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"ws_xpixel",offset:4,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"ws_ypixel",offset:6,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct termio`
pub static S_TERMIO: Struct = Struct { name: "termio", size: 18, fields: &[
    Field{name:"c_iflag",offset:0,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Flags(&flags::T_TC_IFLAG)}),verbose:false,cond:None},
    Field{name:"c_oflag",offset:2,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Flags(&flags::T_TC_OFLAG)}),verbose:false,cond:None},
    Field{name:"c_cflag",offset:4,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Flags(&flags::T_TC_CFLAG)}),verbose:false,cond:None},
    Field{name:"c_lflag",offset:6,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Flags(&flags::T_TC_LFLAG)}),verbose:false,cond:None},
    Field{name:"c_line",offset:8,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Enum(&flags::T_TTY_LDISC)}),verbose:true,cond:None},
    Field{name:"c_cc",offset:9,mem:Mem::Array(&Mem::Int(Int{size:1,signed:false,fmt:Fmt::Hex}),8),verbose:true,cond:None},
] };
/// `struct termios`
pub static S_TERMIOS: Struct = Struct { name: "termios", size: 36, fields: &[
    Field{name:"c_iflag",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_TC_IFLAG)}),verbose:false,cond:None},
    Field{name:"c_oflag",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_TC_OFLAG)}),verbose:false,cond:None},
    Field{name:"c_cflag",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_TC_CFLAG)}),verbose:false,cond:None},
    Field{name:"c_lflag",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_TC_LFLAG)}),verbose:false,cond:None},
    Field{name:"c_line",offset:16,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Enum(&flags::T_TTY_LDISC)}),verbose:true,cond:None},
    Field{name:"c_cc",offset:17,mem:Mem::Array(&Mem::Int(Int{size:1,signed:false,fmt:Fmt::Hex}),19),verbose:true,cond:None},
] };
/// `struct termios2`
pub static S_TERMIOS2: Struct = Struct { name: "termios2", size: 44, fields: &[
    Field{name:"c_iflag",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_TC_IFLAG)}),verbose:false,cond:None},
    Field{name:"c_oflag",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_TC_OFLAG)}),verbose:false,cond:None},
    Field{name:"c_cflag",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_TC_CFLAG)}),verbose:false,cond:None},
    Field{name:"c_lflag",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_TC_LFLAG)}),verbose:false,cond:None},
    Field{name:"c_line",offset:16,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Enum(&flags::T_TTY_LDISC)}),verbose:true,cond:None},
    Field{name:"c_cc",offset:17,mem:Mem::Array(&Mem::Int(Int{size:1,signed:false,fmt:Fmt::Hex}),19),verbose:true,cond:None},
    Field{name:"c_ispeed",offset:36,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"c_ospeed",offset:40,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
] };
/// `struct clone_args`
pub static S_CLONE_ARGS: Struct = Struct { name: "clone_args", size: 88, fields: &[
    Field{name:"flags",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_CLONE)}),verbose:false,cond:None},
    Field{name:"pidfd",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:Some(Cond{on:0,test:Test::Any(0x1000)})},
    Field{name:"child_tid",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:Some(Cond{on:0,test:Test::Any(0x1200000)})},
    Field{name:"parent_tid",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:Some(Cond{on:0,test:Test::Any(0x100000)})},
    Field{name:"exit_signal",offset:32,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Signal}),verbose:false,cond:None},
    Field{name:"stack",offset:40,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"stack_size",offset:48,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"tls",offset:56,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:Some(Cond{on:0,test:Test::Any(0x80000)})},
    Field{name:"set_tid",offset:64,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:Some(Cond{on:8,test:Test::NoneOf(&[0])})},
    Field{name:"set_tid_size",offset:72,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:8,test:Test::NoneOf(&[0])})},
    Field{name:"cgroup",offset:80,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:Some(Cond{on:10,test:Test::NoneOf(&[0])})},
] };
/// `struct sched_attr`
pub static S_SCHED_ATTR: Struct = Struct { name: "sched_attr", size: 56, fields: &[
    Field{name:"size",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"sched_policy",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_SCHED_POLICY)}),verbose:false,cond:None},
    Field{name:"sched_flags",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_SCHED_ATTR)}),verbose:false,cond:None},
    Field{name:"sched_nice",offset:16,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"sched_priority",offset:20,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"sched_runtime",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"sched_deadline",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"sched_period",offset:40,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"sched_util_min",offset:48,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:0,test:Test::NoneOf(&[48])})},
    Field{name:"sched_util_max",offset:52,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:0,test:Test::NoneOf(&[48])})},
] };
/// `struct sched_param`
pub static S_SCHED_PARAM: Struct = Struct { name: "sched_param", size: 4, fields: &[
    Field{name:"_sched_priority",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct flock`
pub static S_FLOCK: Struct = Struct { name: "flock", size: 32, fields: &[
    Field{name:"l_type",offset:0,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Enum(&flags::T_FLOCKTYPE)}),verbose:false,cond:None},
    Field{name:"l_whence",offset:2,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Enum(&flags::T_WHENCE)}),verbose:false,cond:None},
    Field{name:"l_start",offset:8,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"l_len",offset:16,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"l_pid",offset:24,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),verbose:false,cond:None},
] };
/// `struct flock_set`
pub static S_FLOCK_SET: Struct = Struct { name: "flock_set", size: 32, fields: &[
    Field{name:"l_type",offset:0,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Enum(&flags::T_FLOCKTYPE)}),verbose:false,cond:None},
    Field{name:"l_whence",offset:2,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Enum(&flags::T_WHENCE)}),verbose:false,cond:None},
    Field{name:"l_start",offset:8,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"l_len",offset:16,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct f_owner_ex`
pub static S_F_OWNER_EX: Struct = Struct { name: "f_owner_ex", size: 8, fields: &[
    Field{name:"type",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_F_OWNER)}),verbose:false,cond:None},
    Field{name:"pid",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),verbose:false,cond:None},
] };
/// `struct linger`
pub static S_LINGER: Struct = Struct { name: "linger", size: 8, fields: &[
    Field{name:"l_onoff",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"l_linger",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct ucred`
pub static S_UCRED: Struct = Struct { name: "ucred", size: 12, fields: &[
    Field{name:"pid",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),verbose:false,cond:None},
    Field{name:"uid",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),verbose:false,cond:None},
    Field{name:"gid",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),verbose:false,cond:None},
] };
/// `struct iovec`
pub static S_IOVEC: Struct = Struct { name: "iovec", size: 16, fields: &[
    Field{name:"iov_base",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"iov_len",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct robust_list_head`
pub static S_ROBUST_LIST_HEAD: Struct = Struct { name: "robust_list_head", size: 24, fields: &[
    Field{name:"list",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"futex_offset",offset:8,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"list_op_pending",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
] };
/// `struct futex_waitv`
pub static S_FUTEX_WAITV: Struct = Struct { name: "futex_waitv", size: 24, fields: &[
    Field{name:"val",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"uaddr",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"flags",offset:16,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_FUTEX2)}),verbose:false,cond:None},
] };
/// `struct rseq`
pub static S_RSEQ: Struct = Struct { name: "rseq", size: 32, fields: &[
    Field{name:"cpu_id_start",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"cpu_id",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"rseq_cs",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"flags",offset:16,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"node_id",offset:20,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"mm_cid",offset:24,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct cap_header`
pub static S_CAP_HEADER: Struct = Struct { name: "cap_header", size: 8, fields: &[
    Field{name:"version",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_CAP_VERSION)}),verbose:false,cond:None},
    Field{name:"pid",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),verbose:false,cond:None},
] };
/// `struct cap_data`
pub static S_CAP_DATA: Struct = Struct { name: "cap_data", size: 24, fields: &[
    Field{name:"effective",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_CAP)}),verbose:false,cond:None},
    Field{name:"permitted",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_CAP)}),verbose:false,cond:None},
    Field{name:"inheritable",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_CAP)}),verbose:false,cond:None},
    Field{name:"effective_high",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_CAP_HIGH)}),verbose:false,cond:Some(Cond{on:3,test:Test::NoneOf(&[0])})},
    Field{name:"permitted_high",offset:16,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_CAP_HIGH)}),verbose:false,cond:Some(Cond{on:4,test:Test::NoneOf(&[0])})},
    Field{name:"inheritable_high",offset:20,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_CAP_HIGH)}),verbose:false,cond:Some(Cond{on:5,test:Test::NoneOf(&[0])})},
] };
/// `struct utimbuf`
pub static S_UTIMBUF: Struct = Struct { name: "utimbuf", size: 16, fields: &[
    Field{name:"actime",offset:0,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:false,cond:None},
    Field{name:"modtime",offset:8,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:false,cond:None},
] };
/// `struct ipc_perm`
pub static S_IPC_PERM: Struct = Struct { name: "ipc_perm", size: 48, fields: &[
    Field{name:"uid",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),verbose:false,cond:None},
    Field{name:"gid",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),verbose:false,cond:None},
    Field{name:"mode",offset:20,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Oct}),verbose:false,cond:None},
    Field{name:"key",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"cuid",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),verbose:false,cond:None},
    Field{name:"cgid",offset:16,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),verbose:false,cond:None},
] };
/// `struct ipc_perm_set`
pub static S_IPC_PERM_SET: Struct = Struct { name: "ipc_perm_set", size: 48, fields: &[
    Field{name:"uid",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),verbose:false,cond:None},
    Field{name:"gid",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),verbose:false,cond:None},
    Field{name:"mode",offset:20,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Oct}),verbose:false,cond:None},
] };
/// `struct msqid_ds`
pub static S_MSQID_DS: Struct = Struct { name: "msqid_ds", size: 120, fields: &[
    Field{name:"msg_perm",offset:0,mem:Mem::Struct(&structs::S_IPC_PERM),verbose:false,cond:None},
    Field{name:"msg_stime",offset:48,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:false,cond:None},
    Field{name:"msg_rtime",offset:56,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:false,cond:None},
    Field{name:"msg_ctime",offset:64,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:false,cond:None},
    Field{name:"msg_qnum",offset:80,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"msg_qbytes",offset:88,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"msg_lspid",offset:96,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),verbose:false,cond:None},
    Field{name:"msg_lrpid",offset:100,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),verbose:false,cond:None},
] };
/// `struct msqid_ds_set`
pub static S_MSQID_DS_SET: Struct = Struct { name: "msqid_ds_set", size: 120, fields: &[
    Field{name:"msg_perm",offset:0,mem:Mem::Struct(&structs::S_IPC_PERM_SET),verbose:false,cond:None},
    Field{name:"msg_qbytes",offset:88,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct msginfo`
pub static S_MSGINFO: Struct = Struct { name: "msginfo", size: 32, fields: &[
    Field{name:"msgpool",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"msgmap",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"msgmax",offset:8,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"msgmnb",offset:12,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"msgmni",offset:16,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"msgssz",offset:20,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"msgtql",offset:24,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"msgseg",offset:28,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct semid_ds`
pub static S_SEMID_DS: Struct = Struct { name: "semid_ds", size: 104, fields: &[
    Field{name:"sem_perm",offset:0,mem:Mem::Struct(&structs::S_IPC_PERM),verbose:false,cond:None},
    Field{name:"sem_otime",offset:48,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:false,cond:None},
    Field{name:"sem_ctime",offset:64,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:false,cond:None},
    Field{name:"sem_nsems",offset:80,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct semid_ds_set`
pub static S_SEMID_DS_SET: Struct = Struct { name: "semid_ds_set", size: 104, fields: &[
    Field{name:"sem_perm",offset:0,mem:Mem::Struct(&structs::S_IPC_PERM_SET),verbose:false,cond:None},
] };
/// `struct semid_ds_aarch64`
pub static S_SEMID_DS_AARCH64: Struct = Struct { name: "semid_ds_aarch64", size: 88, fields: &[
    Field{name:"sem_perm",offset:0,mem:Mem::Struct(&structs::S_IPC_PERM),verbose:false,cond:None},
    Field{name:"sem_otime",offset:48,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:false,cond:None},
    Field{name:"sem_ctime",offset:56,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:false,cond:None},
    Field{name:"sem_nsems",offset:64,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct seminfo`
pub static S_SEMINFO: Struct = Struct { name: "seminfo", size: 40, fields: &[
    Field{name:"semmap",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"semmni",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"semmns",offset:8,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"semmnu",offset:12,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"semmsl",offset:16,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"semopm",offset:20,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"semume",offset:24,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"semusz",offset:28,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"semvmx",offset:32,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"semaem",offset:36,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct sembuf`
pub static S_SEMBUF: Struct = Struct { name: "sembuf", size: 6, fields: &[
    Field{name:"sem_num",offset:0,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"sem_op",offset:2,mem:Mem::Int(Int{size:2,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"sem_flg",offset:4,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Flags(&flags::T_SEMFLG)}),verbose:false,cond:None},
] };
/// `struct shmid_ds`
pub static S_SHMID_DS: Struct = Struct { name: "shmid_ds", size: 112, fields: &[
    Field{name:"shm_perm",offset:0,mem:Mem::Struct(&structs::S_IPC_PERM),verbose:false,cond:None},
    Field{name:"shm_segsz",offset:48,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"shm_cpid",offset:80,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),verbose:false,cond:None},
    Field{name:"shm_lpid",offset:84,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),verbose:false,cond:None},
    Field{name:"shm_nattch",offset:88,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"shm_atime",offset:56,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:false,cond:None},
    Field{name:"shm_dtime",offset:64,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:false,cond:None},
    Field{name:"shm_ctime",offset:72,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:false,cond:None},
] };
/// `struct shmid_ds_set`
pub static S_SHMID_DS_SET: Struct = Struct { name: "shmid_ds_set", size: 112, fields: &[
    Field{name:"shm_perm",offset:0,mem:Mem::Struct(&structs::S_IPC_PERM_SET),verbose:false,cond:None},
] };
/// `struct shminfo`
pub static S_SHMINFO: Struct = Struct { name: "shminfo", size: 72, fields: &[
    Field{name:"shmmax",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"shmmin",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"shmmni",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"shmseg",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"shmall",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct shm_info`
pub static S_SHM_INFO: Struct = Struct { name: "shm_info", size: 48, fields: &[
    Field{name:"used_ids",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"shm_tot",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"shm_rss",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"shm_swp",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"swap_attempts",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"swap_successes",offset:40,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct open_how`
pub static S_OPEN_HOW: Struct = Struct { name: "open_how", size: 24, fields: &[
    Field{name:"flags",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_OPEN)}),verbose:false,cond:None},
    Field{name:"mode",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Oct}),verbose:false,cond:Some(Cond{on:0,test:Test::Any(0x400040)})},
    Field{name:"resolve",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_RESOLVE)}),verbose:false,cond:None},
] };
/// `struct mount_attr`
pub static S_MOUNT_ATTR: Struct = Struct { name: "mount_attr", size: 32, fields: &[
    Field{name:"attr_set",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_MOUNT_ATTR)}),verbose:false,cond:None},
    Field{name:"attr_clr",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_MOUNT_ATTR)}),verbose:false,cond:None},
    Field{name:"propagation",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_MOUNT)}),verbose:false,cond:None},
    Field{name:"userns_fd",offset:24,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
] };
/// `struct mnt_id_req`
pub static S_MNT_ID_REQ: Struct = Struct { name: "mnt_id_req", size: 32, fields: &[
    Field{name:"size",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"mnt_ns_fd",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:Some(Cond{on:1,test:Test::NoneOf(&[0])})},
    Field{name:"mnt_id",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"param",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_STATMOUNT_MASK)}),verbose:false,cond:None},
    Field{name:"mnt_ns_id",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:Some(Cond{on:0,test:Test::NoneOf(&[24])})},
] };
/// `struct ns_id_req`
pub static S_NS_ID_REQ: Struct = Struct { name: "ns_id_req", size: 32, fields: &[
    Field{name:"size",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"ns_id",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"ns_type",offset:16,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_NS_TYPE)}),verbose:false,cond:None},
    Field{name:"user_ns_id",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Enum(&flags::T_LISTNS_USER)}),verbose:false,cond:None},
] };
/// `struct listmount_req`
pub static S_LISTMOUNT_REQ: Struct = Struct { name: "listmount_req", size: 32, fields: &[
    Field{name:"size",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"mnt_ns_fd",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:Some(Cond{on:1,test:Test::NoneOf(&[0])})},
    Field{name:"mnt_id",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"last_mnt_id",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"mnt_ns_id",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:Some(Cond{on:0,test:Test::NoneOf(&[24])})},
] };
/// `struct statmount`
pub static S_STATMOUNT: Struct = Struct { name: "statmount", size: 512, fields: &[
    Field{name:"size",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"mask",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_STATMOUNT_MASK)}),verbose:false,cond:None},
    Field{name:"sb_dev_major",offset:16,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:1,test:Test::Any(0x1)})},
    Field{name:"sb_dev_minor",offset:20,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:1,test:Test::Any(0x1)})},
    Field{name:"sb_magic",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Enum(&flags::T_FS_TYPE)}),verbose:false,cond:Some(Cond{on:1,test:Test::Any(0x1)})},
    Field{name:"sb_flags",offset:32,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:Some(Cond{on:1,test:Test::Any(0x1)})},
    Field{name:"fs_type",offset:36,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:Some(Cond{on:1,test:Test::Any(0x20)})},
    Field{name:"mnt_id",offset:40,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:Some(Cond{on:1,test:Test::Any(0x2)})},
    Field{name:"mnt_parent_id",offset:48,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:Some(Cond{on:1,test:Test::Any(0x2)})},
    Field{name:"mnt_id_old",offset:56,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:1,test:Test::Any(0x2)})},
    Field{name:"mnt_parent_id_old",offset:60,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:1,test:Test::Any(0x2)})},
    Field{name:"mnt_attr",offset:64,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_MOUNT_ATTR)}),verbose:false,cond:Some(Cond{on:1,test:Test::Any(0x2)})},
    Field{name:"mnt_propagation",offset:72,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_MOUNT)}),verbose:false,cond:Some(Cond{on:1,test:Test::Any(0x2)})},
    Field{name:"mnt_peer_group",offset:80,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:Some(Cond{on:1,test:Test::Any(0x2)})},
    Field{name:"mnt_master",offset:88,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:Some(Cond{on:1,test:Test::Any(0x2)})},
    Field{name:"propagate_from",offset:96,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:Some(Cond{on:1,test:Test::Any(0x4)})},
    Field{name:"mnt_root",offset:104,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:true,cond:Some(Cond{on:1,test:Test::Any(0x8)})},
    Field{name:"mnt_point",offset:108,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:true,cond:Some(Cond{on:1,test:Test::Any(0x10)})},
    Field{name:"mnt_ns_id",offset:112,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:true,cond:Some(Cond{on:1,test:Test::Any(0x40)})},
    Field{name:"mnt_opts",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:true,cond:Some(Cond{on:1,test:Test::Any(0x80)})},
    Field{name:"fs_subtype",offset:120,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:true,cond:Some(Cond{on:1,test:Test::Any(0x100)})},
    Field{name:"sb_source",offset:124,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:true,cond:Some(Cond{on:1,test:Test::Any(0x200)})},
    Field{name:"opt_num",offset:128,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:true,cond:Some(Cond{on:1,test:Test::Any(0x400)})},
    Field{name:"opt_array",offset:132,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:true,cond:Some(Cond{on:1,test:Test::Any(0x400)})},
    Field{name:"opt_sec_num",offset:136,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:true,cond:Some(Cond{on:1,test:Test::Any(0x800)})},
    Field{name:"opt_sec_array",offset:140,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:true,cond:Some(Cond{on:1,test:Test::Any(0x800)})},
    Field{name:"supported_mask",offset:144,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_STATMOUNT_MASK)}),verbose:true,cond:Some(Cond{on:1,test:Test::Any(0x1000)})},
    Field{name:"mnt_uidmap_num",offset:152,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:true,cond:Some(Cond{on:1,test:Test::Any(0x2000)})},
    Field{name:"mnt_uidmap",offset:156,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:true,cond:Some(Cond{on:1,test:Test::Any(0x2000)})},
    Field{name:"mnt_gidmap_num",offset:160,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:true,cond:Some(Cond{on:1,test:Test::Any(0x4000)})},
    Field{name:"mnt_gidmap",offset:164,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:true,cond:Some(Cond{on:1,test:Test::Any(0x4000)})},
] };
/// `struct sigval`
pub static S_SIGVAL: Struct = Struct { name: "sigval", size: 8, fields: &[
    Field{name:"sival_int",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"sival_ptr",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
] };
/// `struct sigevent`
pub static S_SIGEVENT: Struct = Struct { name: "sigevent", size: 64, fields: &[
    Field{name:"sigev_value",offset:0,mem:Mem::Struct(&structs::S_SIGVAL),verbose:false,cond:Some(Cond{on:0,test:Test::NoneOf(&[0])})},
    Field{name:"sigev_signo",offset:8,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Signal}),verbose:false,cond:Some(Cond{on:3,test:Test::NoneOf(&[1])})},
    Field{name:"sigev_signo",offset:8,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:3,test:Test::OneOf(&[1])})},
    Field{name:"sigev_notify",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_SIGEV_NOTIFY)}),verbose:false,cond:None},
    Field{name:"sigev_notify_thread_id",offset:16,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Tid}),verbose:false,cond:Some(Cond{on:3,test:Test::OneOf(&[4])})},
    Field{name:"sigev_notify_function",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:Some(Cond{on:3,test:Test::OneOf(&[2])})},
    Field{name:"sigev_notify_attributes",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:Some(Cond{on:3,test:Test::OneOf(&[2])})},
] };
/// `struct siginfo`
pub static S_SIGINFO: Struct = Struct { name: "siginfo", size: 128, fields: &[
    Field{name:"si_signo",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Signal}),verbose:false,cond:None},
    Field{name:"si_code",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_SI_CODE_SIGCHLD)}),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[17])})},
    Field{name:"si_code",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_SI_CODE_SIGSEGV)}),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[11])})},
    Field{name:"si_code",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_SI_CODE_SIGBUS)}),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[7])})},
    Field{name:"si_code",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_SI_CODE_SIGFPE)}),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[8])})},
    Field{name:"si_code",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_SI_CODE_SIGILL)}),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[4])})},
    Field{name:"si_code",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_SI_CODE_SIGTRAP)}),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[5])})},
    Field{name:"si_code",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_SI_CODE_SIGPOLL)}),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[29])})},
    Field{name:"si_code",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_SI_CODE_SIGSYS)}),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[31])})},
    Field{name:"si_code",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_SI_CODE)}),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[1, 2, 3, 6, 9, 10, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 30, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64])})},
    Field{name:"si_errno",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:10,test:Test::NoneOf(&[0])})},
    Field{name:"si_pid",offset:16,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[17, 1, 2, 3, 6, 9, 10, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 30, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64])})},
    Field{name:"si_uid",offset:20,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[17, 1, 2, 3, 6, 9, 10, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 30, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64])})},
    Field{name:"si_status",offset:24,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[17])})},
    Field{name:"si_utime",offset:32,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::ClockTicks}),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[17])})},
    Field{name:"si_stime",offset:40,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::ClockTicks}),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[17])})},
    Field{name:"si_addr",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[11, 7, 8, 4, 5])})},
    Field{name:"si_band",offset:16,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[29])})},
    Field{name:"si_fd",offset:24,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[29])})},
    Field{name:"si_call_addr",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[31])})},
    Field{name:"si_syscall",offset:24,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[31])})},
    Field{name:"si_arch",offset:28,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[31])})},
    Field{name:"si_int",offset:24,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:1,test:Test::OneOf(&[4294967295, 4294967294, 4294967293, 4294967292])})},
    Field{name:"si_ptr",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:Some(Cond{on:1,test:Test::OneOf(&[4294967295, 4294967294, 4294967293, 4294967292])})},
] };
/// `struct io_sqring_offsets`
pub static S_IO_SQRING_OFFSETS: Struct = Struct { name: "io_sqring_offsets", size: 40, fields: &[
    Field{name:"head",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tail",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"ring_mask",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"ring_entries",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"flags",offset:16,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"dropped",offset:20,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"array",offset:24,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct io_cqring_offsets`
pub static S_IO_CQRING_OFFSETS: Struct = Struct { name: "io_cqring_offsets", size: 40, fields: &[
    Field{name:"head",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tail",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"ring_mask",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"ring_entries",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"overflow",offset:16,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"cqes",offset:20,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"flags",offset:24,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct io_uring_params`
pub static S_IO_URING_PARAMS: Struct = Struct { name: "io_uring_params", size: 120, fields: &[
    Field{name:"flags",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_IO_URING_SETUP)}),verbose:false,cond:None},
    Field{name:"sq_thread_cpu",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"sq_thread_idle",offset:16,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"wq_fd",offset:24,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:Some(Cond{on:0,test:Test::Any(0x20)})},
    Field{name:"sq_entries",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"cq_entries",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"features",offset:20,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_IO_URING_FEATURES)}),verbose:false,cond:None},
    Field{name:"sq_off",offset:40,mem:Mem::Struct(&structs::S_IO_SQRING_OFFSETS),verbose:false,cond:None},
    Field{name:"cq_off",offset:80,mem:Mem::Struct(&structs::S_IO_CQRING_OFFSETS),verbose:false,cond:None},
] };
/// `struct io_event`
pub static S_IO_EVENT: Struct = Struct { name: "io_event", size: 32, fields: &[
    Field{name:"data",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"obj",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"res",offset:16,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"res2",offset:24,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct iocb`
pub static S_IOCB: Struct = Struct { name: "iocb", size: 64, fields: &[
    Field{name:"aio_data",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:Some(Cond{on:0,test:Test::NoneOf(&[0])})},
    Field{name:"aio_key",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:1,test:Test::NoneOf(&[0])})},
    Field{name:"aio_rw_flags",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_RWF)}),verbose:false,cond:Some(Cond{on:2,test:Test::NoneOf(&[0])})},
    Field{name:"aio_lio_opcode",offset:16,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Enum(&flags::T_AIO_CMD)}),verbose:false,cond:None},
    Field{name:"aio_reqprio",offset:18,mem:Mem::Int(Int{size:2,signed:true,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:4,test:Test::NoneOf(&[0])})},
    Field{name:"aio_fildes",offset:20,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"aio_buf",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:Some(Cond{on:3,test:Test::NoneOf(&[2])})},
    Field{name:"aio_nbytes",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:3,test:Test::OneOf(&[0, 1, 7, 8])})},
    Field{name:"aio_offset",offset:40,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:3,test:Test::OneOf(&[0, 1, 7, 8])})},
    Field{name:"aio_flags",offset:56,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_IOCB_FLAGS)}),verbose:false,cond:Some(Cond{on:9,test:Test::NoneOf(&[0])})},
    Field{name:"aio_resfd",offset:60,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:Some(Cond{on:9,test:Test::Any(0x1)})},
] };
/// `struct perf_event_attr`
pub static S_PERF_EVENT_ATTR: Struct = Struct { name: "perf_event_attr", size: 136, fields: &[
    Field{name:"type",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_PERF_TYPE)}),verbose:false,cond:None},
    Field{name:"size",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"config",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Enum(&flags::T_PERF_HW)}),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[0])})},
    Field{name:"config",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Enum(&flags::T_PERF_SW)}),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[1])})},
    Field{name:"config",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[3, 4])})},
    Field{name:"config",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[2, 5])})},
    Field{name:"config",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:Some(Cond{on:0,test:Test::Any(0xfffffff8)})},
    Field{name:"config",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[6, 7])})},
    Field{name:"sample_period",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"sample_type",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_PERF_SAMPLE)}),verbose:false,cond:None},
    Field{name:"read_format",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_PERF_READ_FORMAT)}),verbose:false,cond:None},
    Field{name:"flags",offset:40,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_PERF_ATTR_BITS)}),verbose:false,cond:None},
    Field{name:"wakeup_events",offset:48,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"bp_type",offset:52,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_PERF_BP_TYPE)}),verbose:true,cond:None},
    Field{name:"config1",offset:56,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:true,cond:None},
    Field{name:"config2",offset:64,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:true,cond:None},
    Field{name:"branch_sample_type",offset:72,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:true,cond:None},
    Field{name:"sample_regs_user",offset:80,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:true,cond:None},
    Field{name:"sample_stack_user",offset:88,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:true,cond:None},
    Field{name:"clockid",offset:92,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_CLOCK)}),verbose:true,cond:None},
    Field{name:"sample_regs_intr",offset:96,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:true,cond:None},
    Field{name:"aux_watermark",offset:104,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:true,cond:Some(Cond{on:1,test:Test::NoneOf(&[64])})},
    Field{name:"sample_max_stack",offset:108,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:true,cond:Some(Cond{on:1,test:Test::NoneOf(&[64])})},
    Field{name:"aux_sample_size",offset:112,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:true,cond:Some(Cond{on:1,test:Test::NoneOf(&[64])})},
    Field{name:"sig_data",offset:120,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:true,cond:Some(Cond{on:1,test:Test::NoneOf(&[64])})},
    Field{name:"config3",offset:128,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:true,cond:Some(Cond{on:1,test:Test::OneOf(&[136])})},
] };
/// `struct file_handle`
pub static S_FILE_HANDLE: Struct = Struct { name: "file_handle", size: 8, fields: &[
    Field{name:"handle_bytes",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"handle_type",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct ifmap`
pub static S_IFMAP: Struct = Struct { name: "ifmap", size: 24, fields: &[
    Field{name:"mem_start",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"mem_end",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"base_addr",offset:16,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"irq",offset:18,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"dma",offset:19,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"port",offset:20,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct ifreq_name`
pub static S_IFREQ_NAME: Struct = Struct { name: "ifreq_name", size: 40, fields: &[
    Field{name:"ifr_name",offset:0,mem:Mem::Chars(16),verbose:false,cond:None},
] };
/// `struct ifreq_newname`
pub static S_IFREQ_NEWNAME: Struct = Struct { name: "ifreq_newname", size: 40, fields: &[
    Field{name:"ifr_name",offset:0,mem:Mem::Chars(16),verbose:false,cond:None},
    Field{name:"ifr_newname",offset:16,mem:Mem::Chars(16),verbose:false,cond:None},
] };
/// `struct ifreq_getname`
pub static S_IFREQ_GETNAME: Struct = Struct { name: "ifreq_getname", size: 40, fields: &[
    Field{name:"ifr_ifindex",offset:16,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"ifr_name",offset:0,mem:Mem::Chars(16),verbose:false,cond:None},
] };
/// `struct ifreq_flags`
pub static S_IFREQ_FLAGS: Struct = Struct { name: "ifreq_flags", size: 40, fields: &[
    Field{name:"ifr_name",offset:0,mem:Mem::Chars(16),verbose:false,cond:None},
    Field{name:"ifr_flags",offset:16,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Flags(&flags::T_IFFLAGS)}),verbose:false,cond:None},
] };
/// `struct ifreq_ifindex`
pub static S_IFREQ_IFINDEX: Struct = Struct { name: "ifreq_ifindex", size: 40, fields: &[
    Field{name:"ifr_name",offset:0,mem:Mem::Chars(16),verbose:false,cond:None},
    Field{name:"ifr_ifindex",offset:16,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct ifreq_metric`
pub static S_IFREQ_METRIC: Struct = Struct { name: "ifreq_metric", size: 40, fields: &[
    Field{name:"ifr_name",offset:0,mem:Mem::Chars(16),verbose:false,cond:None},
    Field{name:"ifr_metric",offset:16,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct ifreq_mtu`
pub static S_IFREQ_MTU: Struct = Struct { name: "ifreq_mtu", size: 40, fields: &[
    Field{name:"ifr_name",offset:0,mem:Mem::Chars(16),verbose:false,cond:None},
    Field{name:"ifr_mtu",offset:16,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct ifreq_qlen`
pub static S_IFREQ_QLEN: Struct = Struct { name: "ifreq_qlen", size: 40, fields: &[
    Field{name:"ifr_name",offset:0,mem:Mem::Chars(16),verbose:false,cond:None},
    Field{name:"ifr_qlen",offset:16,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct ifreq_slave`
pub static S_IFREQ_SLAVE: Struct = Struct { name: "ifreq_slave", size: 40, fields: &[
    Field{name:"ifr_name",offset:0,mem:Mem::Chars(16),verbose:false,cond:None},
    Field{name:"ifr_slave",offset:16,mem:Mem::Chars(16),verbose:false,cond:None},
] };
/// `struct ifreq_map`
pub static S_IFREQ_MAP: Struct = Struct { name: "ifreq_map", size: 40, fields: &[
    Field{name:"ifr_name",offset:0,mem:Mem::Chars(16),verbose:false,cond:None},
    Field{name:"ifr_map",offset:16,mem:Mem::Struct(&structs::S_IFMAP),verbose:false,cond:None},
] };
/// `struct ifreq_data`
pub static S_IFREQ_DATA: Struct = Struct { name: "ifreq_data", size: 40, fields: &[
    Field{name:"ifr_name",offset:0,mem:Mem::Chars(16),verbose:false,cond:None},
    Field{name:"ifr_data",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
] };
/// `struct sockaddr_in`
pub static S_SOCKADDR_IN: Struct = Struct { name: "sockaddr_in", size: 16, fields: &[
    Field{name:"sa_family",offset:0,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Enum(&flags::T_AF)}),verbose:false,cond:None},
    Field{name:"sin_port",offset:2,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Be16}),verbose:false,cond:None},
    Field{name:"sin_addr",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Inet4}),verbose:false,cond:None},
] };
/// `struct ifreq_addr`
pub static S_IFREQ_ADDR: Struct = Struct { name: "ifreq_addr", size: 40, fields: &[
    Field{name:"ifr_name",offset:0,mem:Mem::Chars(16),verbose:false,cond:None},
    Field{name:"ifr_addr",offset:16,mem:Mem::Struct(&structs::S_SOCKADDR_IN),verbose:false,cond:None},
] };
/// `struct ifreq_dstaddr`
pub static S_IFREQ_DSTADDR: Struct = Struct { name: "ifreq_dstaddr", size: 40, fields: &[
    Field{name:"ifr_name",offset:0,mem:Mem::Chars(16),verbose:false,cond:None},
    Field{name:"ifr_dstaddr",offset:16,mem:Mem::Struct(&structs::S_SOCKADDR_IN),verbose:false,cond:None},
] };
/// `struct ifreq_broadaddr`
pub static S_IFREQ_BROADADDR: Struct = Struct { name: "ifreq_broadaddr", size: 40, fields: &[
    Field{name:"ifr_name",offset:0,mem:Mem::Chars(16),verbose:false,cond:None},
    Field{name:"ifr_broadaddr",offset:16,mem:Mem::Struct(&structs::S_SOCKADDR_IN),verbose:false,cond:None},
] };
/// `struct ifreq_netmask`
pub static S_IFREQ_NETMASK: Struct = Struct { name: "ifreq_netmask", size: 40, fields: &[
    Field{name:"ifr_name",offset:0,mem:Mem::Chars(16),verbose:false,cond:None},
    Field{name:"ifr_netmask",offset:16,mem:Mem::Struct(&structs::S_SOCKADDR_IN),verbose:false,cond:None},
] };
/// `struct sockaddr_hw`
pub static S_SOCKADDR_HW: Struct = Struct { name: "sockaddr_hw", size: 16, fields: &[
    Field{name:"sa_family",offset:0,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Enum(&flags::T_ARPHRD)}),verbose:false,cond:None},
    Field{name:"sa_data",offset:2,mem:Mem::Array(&Mem::Int(Int{size:1,signed:false,fmt:Fmt::Hex}),6),verbose:false,cond:None},
] };
/// `struct ifreq_hwaddr`
pub static S_IFREQ_HWADDR: Struct = Struct { name: "ifreq_hwaddr", size: 40, fields: &[
    Field{name:"ifr_name",offset:0,mem:Mem::Chars(16),verbose:false,cond:None},
    Field{name:"ifr_hwaddr",offset:16,mem:Mem::Struct(&structs::S_SOCKADDR_HW),verbose:false,cond:None},
] };
/// `struct ifconf`
pub static S_IFCONF: Struct = Struct { name: "ifconf", size: 16, fields: &[
    Field{name:"ifc_len",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"ifc_buf",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
] };
/// `struct fiemap`
pub static S_FIEMAP: Struct = Struct { name: "fiemap", size: 32, fields: &[
    Field{name:"fm_start",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"fm_length",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"fm_flags",offset:16,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_FIEMAP_FLAGS)}),verbose:false,cond:None},
    Field{name:"fm_mapped_extents",offset:20,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"fm_extent_count",offset:24,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct fiemap_extent`
pub static S_FIEMAP_EXTENT: Struct = Struct { name: "fiemap_extent", size: 56, fields: &[
    Field{name:"fe_logical",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"fe_physical",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"fe_length",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"fe_flags",offset:40,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_FIEMAP_EXTENT)}),verbose:false,cond:None},
] };
/// `struct fstrim_range`
pub static S_FSTRIM_RANGE: Struct = Struct { name: "fstrim_range", size: 24, fields: &[
    Field{name:"start",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"len",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"minlen",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct file_clone_range`
pub static S_FILE_CLONE_RANGE: Struct = Struct { name: "file_clone_range", size: 32, fields: &[
    Field{name:"src_fd",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"src_offset",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"src_length",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"dest_offset",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct file_dedupe_range`
pub static S_FILE_DEDUPE_RANGE: Struct = Struct { name: "file_dedupe_range", size: 24, fields: &[
    Field{name:"src_offset",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"src_length",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"dest_count",offset:16,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct fsxattr`
pub static S_FSXATTR: Struct = Struct { name: "fsxattr", size: 28, fields: &[
    Field{name:"fsx_xflags",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_FS_XFLAGS)}),verbose:false,cond:None},
    Field{name:"fsx_extsize",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"fsx_nextents",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"fsx_projid",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"fsx_cowextsize",offset:16,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct fsuuid2`
pub static S_FSUUID2: Struct = Struct { name: "fsuuid2", size: 17, fields: &[
    Field{name:"len",offset:0,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"uuid",offset:1,mem:Mem::Array(&Mem::Int(Int{size:1,signed:false,fmt:Fmt::Hex}),16),verbose:false,cond:None},
] };
/// `struct pm_scan_arg`
pub static S_PM_SCAN_ARG: Struct = Struct { name: "pm_scan_arg", size: 96, fields: &[
    Field{name:"size",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"flags",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"start",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"end",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"walk_end",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"vec",offset:40,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"vec_len",offset:48,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"max_pages",offset:56,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"category_inverted",offset:64,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"category_mask",offset:72,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"category_anyof_mask",offset:80,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"return_mask",offset:88,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct loop_info64`
pub static S_LOOP_INFO64: Struct = Struct { name: "loop_info64", size: 232, fields: &[
    Field{name:"lo_device",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dev}),verbose:true,cond:None},
    Field{name:"lo_inode",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"lo_rdevice",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dev}),verbose:true,cond:None},
    Field{name:"lo_offset",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"lo_sizelimit",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"lo_number",offset:40,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"lo_encrypt_type",offset:44,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_LO_CRYPT)}),verbose:false,cond:None},
    Field{name:"lo_encrypt_key_size",offset:48,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:7,test:Test::NoneOf(&[0])})},
    Field{name:"lo_flags",offset:52,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_LOOP_FLAGS)}),verbose:false,cond:None},
    Field{name:"lo_file_name",offset:56,mem:Mem::Chars(64),verbose:false,cond:None},
    Field{name:"lo_crypt_name",offset:120,mem:Mem::Chars(64),verbose:false,cond:Some(Cond{on:6,test:Test::NoneOf(&[0])})},
    Field{name:"lo_encrypt_key",offset:184,mem:Mem::Bytes(32),verbose:false,cond:Some(Cond{on:7,test:Test::NoneOf(&[0])})},
    Field{name:"lo_init",offset:216,mem:Mem::Array(&Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),2),verbose:true,cond:None},
] };
/// `struct loop_config`
pub static S_LOOP_CONFIG: Struct = Struct { name: "loop_config", size: 304, fields: &[
    Field{name:"fd",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"block_size",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"info",offset:8,mem:Mem::Struct(&structs::S_LOOP_INFO64),verbose:false,cond:None},
] };
/// `struct ip_mreq`
pub static S_IP_MREQ: Struct = Struct { name: "ip_mreq", size: 8, fields: &[
    Field{name:"imr_multiaddr",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Inet4}),verbose:false,cond:None},
    Field{name:"imr_interface",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Inet4}),verbose:false,cond:None},
] };
/// `struct ip_mreqn`
pub static S_IP_MREQN: Struct = Struct { name: "ip_mreqn", size: 12, fields: &[
    Field{name:"imr_multiaddr",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Inet4}),verbose:false,cond:None},
    Field{name:"imr_address",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Inet4}),verbose:false,cond:None},
    Field{name:"imr_ifindex",offset:8,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct ip_mreq_source`
pub static S_IP_MREQ_SOURCE: Struct = Struct { name: "ip_mreq_source", size: 12, fields: &[
    Field{name:"imr_multiaddr",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Inet4}),verbose:false,cond:None},
    Field{name:"imr_interface",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Inet4}),verbose:false,cond:None},
    Field{name:"imr_sourceaddr",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Inet4}),verbose:false,cond:None},
] };
/// `struct group_req`
pub static S_GROUP_REQ: Struct = Struct { name: "group_req", size: 136, fields: &[
    Field{name:"gr_interface",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"gr_group",offset:8,mem:Mem::Struct(&structs::S_SOCKADDR_IN),verbose:false,cond:None},
] };
/// `struct group_source_req`
pub static S_GROUP_SOURCE_REQ: Struct = Struct { name: "group_source_req", size: 264, fields: &[
    Field{name:"gsr_interface",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"gsr_group",offset:8,mem:Mem::Struct(&structs::S_SOCKADDR_IN),verbose:false,cond:None},
    Field{name:"gsr_source",offset:136,mem:Mem::Struct(&structs::S_SOCKADDR_IN),verbose:false,cond:None},
] };
/// `struct ipv6_mreq`
pub static S_IPV6_MREQ: Struct = Struct { name: "ipv6_mreq", size: 20, fields: &[
    Field{name:"ipv6mr_multiaddr",offset:0,mem:Mem::Inet6,verbose:false,cond:None},
    Field{name:"ipv6mr_interface",offset:16,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct tcp_info`
pub static S_TCP_INFO: Struct = Struct { name: "tcp_info", size: 280, fields: &[
    Field{name:"tcpi_state",offset:0,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Enum(&flags::T_TCP_STATE)}),verbose:false,cond:None},
    Field{name:"tcpi_ca_state",offset:1,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_retransmits",offset:2,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_probes",offset:3,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_backoff",offset:4,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_options",offset:5,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"tcpi_rto",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_ato",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_snd_mss",offset:16,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_rcv_mss",offset:20,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_unacked",offset:24,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_sacked",offset:28,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_lost",offset:32,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_retrans",offset:36,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_fackets",offset:40,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_last_data_sent",offset:44,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_last_ack_sent",offset:48,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_last_data_recv",offset:52,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_last_ack_recv",offset:56,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_pmtu",offset:60,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_rcv_ssthresh",offset:64,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_rtt",offset:68,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_rttvar",offset:72,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_snd_ssthresh",offset:76,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_snd_cwnd",offset:80,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_advmss",offset:84,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_reordering",offset:88,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_rcv_rtt",offset:92,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_rcv_space",offset:96,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_total_retrans",offset:100,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_pacing_rate",offset:104,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_max_pacing_rate",offset:112,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_bytes_acked",offset:120,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_bytes_received",offset:128,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_segs_out",offset:136,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_segs_in",offset:140,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_notsent_bytes",offset:144,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_min_rtt",offset:148,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_data_segs_in",offset:152,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_data_segs_out",offset:156,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_delivery_rate",offset:160,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_busy_time",offset:168,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_rwnd_limited",offset:176,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_sndbuf_limited",offset:184,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_delivered",offset:192,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_delivered_ce",offset:196,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_bytes_sent",offset:200,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_bytes_retrans",offset:208,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_dsack_dups",offset:216,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_reord_seen",offset:220,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_rcv_ooopack",offset:224,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_snd_wnd",offset:228,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_rcv_wnd",offset:232,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tcpi_rehash",offset:236,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct packet_mreq`
pub static S_PACKET_MREQ: Struct = Struct { name: "packet_mreq", size: 16, fields: &[
    Field{name:"mr_ifindex",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"mr_type",offset:4,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"mr_alen",offset:6,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"mr_address",offset:8,mem:Mem::Array(&Mem::Int(Int{size:1,signed:false,fmt:Fmt::Hex}),8),verbose:false,cond:None},
] };
/// `struct tpacket_stats`
pub static S_TPACKET_STATS: Struct = Struct { name: "tpacket_stats", size: 8, fields: &[
    Field{name:"tp_packets",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tp_drops",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct tpacket_req`
pub static S_TPACKET_REQ: Struct = Struct { name: "tpacket_req", size: 16, fields: &[
    Field{name:"tp_block_size",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tp_block_nr",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tp_frame_size",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tp_frame_nr",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct dqblk`
pub static S_DQBLK: Struct = Struct { name: "dqblk", size: 72, fields: &[
    Field{name:"dqb_bhardlimit",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"dqb_bsoftlimit",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"dqb_curspace",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"dqb_ihardlimit",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"dqb_isoftlimit",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"dqb_curinodes",offset:40,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"dqb_btime",offset:48,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:true,cond:None},
    Field{name:"dqb_itime",offset:56,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:true,cond:None},
    Field{name:"dqb_valid",offset:64,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_QUOTA_VALID)}),verbose:true,cond:None},
] };
/// `struct nextdqblk`
pub static S_NEXTDQBLK: Struct = Struct { name: "nextdqblk", size: 72, fields: &[
    Field{name:"dqb_bhardlimit",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"dqb_bsoftlimit",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"dqb_curspace",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"dqb_ihardlimit",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"dqb_isoftlimit",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"dqb_curinodes",offset:40,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"dqb_btime",offset:48,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:true,cond:None},
    Field{name:"dqb_itime",offset:56,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:true,cond:None},
    Field{name:"dqb_valid",offset:64,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_QUOTA_VALID)}),verbose:true,cond:None},
    Field{name:"dqb_id",offset:68,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct dqinfo`
pub static S_DQINFO: Struct = Struct { name: "dqinfo", size: 24, fields: &[
    Field{name:"dqi_bgrace",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"dqi_igrace",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"dqi_flags",offset:16,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_IF_DQINFO_FLAGS)}),verbose:false,cond:None},
    Field{name:"dqi_valid",offset:20,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_QUOTA_INFO_VALID)}),verbose:false,cond:None},
] };
/// `struct fs_disk_quota`
pub static S_FS_DISK_QUOTA: Struct = Struct { name: "fs_disk_quota", size: 112, fields: &[
    Field{name:"d_version",offset:0,mem:Mem::Int(Int{size:1,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"d_flags",offset:1,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Flags(&flags::T_XFS_QUOTA_TYPE)}),verbose:false,cond:None},
    Field{name:"d_fieldmask",offset:2,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"d_id",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"d_blk_hardlimit",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"d_blk_softlimit",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"d_ino_hardlimit",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"d_ino_softlimit",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"d_bcount",offset:40,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"d_icount",offset:48,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"d_itimer",offset:56,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"d_btimer",offset:60,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"d_iwarns",offset:64,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"d_bwarns",offset:66,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"d_rtb_hardlimit",offset:72,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"d_rtb_softlimit",offset:80,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"d_rtbcount",offset:88,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"d_rtbtimer",offset:96,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"d_rtbwarns",offset:100,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
] };
/// `struct fs_quota_stat`
pub static S_FS_QUOTA_STAT: Struct = Struct { name: "fs_quota_stat", size: 80, fields: &[
    Field{name:"qs_version",offset:0,mem:Mem::Int(Int{size:1,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"qs_flags",offset:2,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Flags(&flags::T_XFS_QUOTA_FLAGS)}),verbose:true,cond:None},
    Field{name:"qs_incoredqs",offset:56,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"qs_btimelimit",offset:60,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"qs_itimelimit",offset:64,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"qs_rtbtimelimit",offset:68,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"qs_bwarnlimit",offset:72,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"qs_iwarnlimit",offset:74,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
] };
/// `struct fs_quota_statv`
pub static S_FS_QUOTA_STATV: Struct = Struct { name: "fs_quota_statv", size: 160, fields: &[
    Field{name:"qs_version",offset:0,mem:Mem::Int(Int{size:1,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"qs_flags",offset:2,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Flags(&flags::T_XFS_QUOTA_FLAGS)}),verbose:true,cond:None},
    Field{name:"qs_incoredqs",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"qs_btimelimit",offset:80,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"qs_itimelimit",offset:84,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"qs_rtbtimelimit",offset:88,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"qs_bwarnlimit",offset:92,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"qs_iwarnlimit",offset:94,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
] };
/// `struct ustat`
pub static S_USTAT: Struct = Struct { name: "ustat", size: 32, fields: &[
    Field{name:"f_tfree",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"f_tinode",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"f_fname",offset:16,mem:Mem::Chars(6),verbose:false,cond:None},
    Field{name:"f_fpack",offset:22,mem:Mem::Chars(6),verbose:false,cond:None},
] };
/// `struct mq_attr`
pub static S_MQ_ATTR: Struct = Struct { name: "mq_attr", size: 64, fields: &[
    Field{name:"mq_flags",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_OPENMODE)}),verbose:false,cond:None},
    Field{name:"mq_maxmsg",offset:8,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"mq_msgsize",offset:16,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"mq_curmsgs",offset:24,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct seccomp_data`
pub static S_SECCOMP_DATA: Struct = Struct { name: "seccomp_data", size: 64, fields: &[
    Field{name:"nr",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"arch",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_AUDIT_ARCH)}),verbose:false,cond:None},
    Field{name:"instruction_pointer",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"args",offset:16,mem:Mem::Array(&Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),6),verbose:false,cond:None},
] };
/// `struct seccomp_notif_sizes`
pub static S_SECCOMP_NOTIF_SIZES: Struct = Struct { name: "seccomp_notif_sizes", size: 6, fields: &[
    Field{name:"seccomp_notif",offset:0,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"seccomp_notif_resp",offset:2,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"seccomp_data",offset:4,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct seccomp_notif`
pub static S_SECCOMP_NOTIF: Struct = Struct { name: "seccomp_notif", size: 80, fields: &[
    Field{name:"id",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"pid",offset:8,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),verbose:false,cond:None},
    Field{name:"flags",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"data",offset:16,mem:Mem::Struct(&structs::S_SECCOMP_DATA),verbose:false,cond:None},
] };
/// `struct seccomp_notif_resp`
pub static S_SECCOMP_NOTIF_RESP: Struct = Struct { name: "seccomp_notif_resp", size: 24, fields: &[
    Field{name:"id",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"val",offset:8,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"error",offset:16,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"flags",offset:20,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct sock_fprog`
pub static S_SOCK_FPROG: Struct = Struct { name: "sock_fprog", size: 16, fields: &[
    Field{name:"len",offset:0,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"filter",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
] };
/// `struct sock_filter`
pub static S_SOCK_FILTER: Struct = Struct { name: "sock_filter", size: 8, fields: &[
    Field{name:"code",offset:0,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"jt",offset:2,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"jf",offset:3,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"k",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct user_desc`
pub static S_USER_DESC: Struct = Struct { name: "user_desc", size: 16, fields: &[
    Field{name:"entry_number",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"base_addr",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"limit",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"flags",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_USER_DESC_BITS)}),verbose:false,cond:None},
] };
/// `struct vt_stat`
pub static S_VT_STAT: Struct = Struct { name: "vt_stat", size: 6, fields: &[
    Field{name:"v_active",offset:0,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"v_signal",offset:2,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"v_state",offset:4,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct vt_mode`
pub static S_VT_MODE: Struct = Struct { name: "vt_mode", size: 8, fields: &[
    Field{name:"mode",offset:0,mem:Mem::Int(Int{size:1,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"waitv",offset:1,mem:Mem::Int(Int{size:1,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"relsig",offset:2,mem:Mem::Int(Int{size:2,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"acqsig",offset:4,mem:Mem::Int(Int{size:2,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"frsig",offset:6,mem:Mem::Int(Int{size:2,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct landlock_ruleset_attr`
pub static S_LANDLOCK_RULESET_ATTR: Struct = Struct { name: "landlock_ruleset_attr", size: 24, fields: &[
    Field{name:"handled_access_fs",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_LANDLOCK_ACCESS_FS)}),verbose:false,cond:None},
    Field{name:"handled_access_net",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_LANDLOCK_ACCESS_NET)}),verbose:false,cond:Some(Cond{on:1,test:Test::NoneOf(&[0])})},
    Field{name:"scoped",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_LANDLOCK_SCOPE)}),verbose:false,cond:Some(Cond{on:2,test:Test::NoneOf(&[0])})},
] };
/// `struct landlock_path_beneath_attr`
pub static S_LANDLOCK_PATH_BENEATH_ATTR: Struct = Struct { name: "landlock_path_beneath_attr", size: 12, fields: &[
    Field{name:"allowed_access",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_LANDLOCK_ACCESS_FS)}),verbose:false,cond:None},
    Field{name:"parent_fd",offset:8,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
] };
/// `struct cachestat_range`
pub static S_CACHESTAT_RANGE: Struct = Struct { name: "cachestat_range", size: 16, fields: &[
    Field{name:"off",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"len",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct cachestat`
pub static S_CACHESTAT: Struct = Struct { name: "cachestat", size: 40, fields: &[
    Field{name:"nr_cache",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"nr_dirty",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"nr_writeback",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"nr_evicted",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"nr_recently_evicted",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct hd_geometry`
pub static S_HD_GEOMETRY: Struct = Struct { name: "hd_geometry", size: 16, fields: &[
    Field{name:"heads",offset:0,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"sectors",offset:1,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"cylinders",offset:2,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"start",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct rtc_time`
pub static S_RTC_TIME: Struct = Struct { name: "rtc_time", size: 36, fields: &[
    Field{name:"tm_sec",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tm_min",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tm_hour",offset:8,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tm_mday",offset:12,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tm_mon",offset:16,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tm_year",offset:20,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"tm_wday",offset:24,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"tm_yday",offset:28,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"tm_isdst",offset:32,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:true,cond:None},
] };
/// `struct rtc_wkalrm`
pub static S_RTC_WKALRM: Struct = Struct { name: "rtc_wkalrm", size: 40, fields: &[
    Field{name:"enabled",offset:0,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"pending",offset:1,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"time",offset:4,mem:Mem::Struct(&structs::S_RTC_TIME),verbose:false,cond:None},
] };
/// `struct pps_ktime`
pub static S_PPS_KTIME: Struct = Struct { name: "pps_ktime", size: 16, fields: &[
    Field{name:"sec",offset:0,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"nsec",offset:8,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"flags",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct pps_kparams`
pub static S_PPS_KPARAMS: Struct = Struct { name: "pps_kparams", size: 40, fields: &[
    Field{name:"api_version",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"mode",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"assert_off_tu",offset:8,mem:Mem::Struct(&structs::S_PPS_KTIME),verbose:false,cond:None},
    Field{name:"clear_off_tu",offset:24,mem:Mem::Struct(&structs::S_PPS_KTIME),verbose:false,cond:None},
] };
/// `struct sg_io_hdr`
pub static S_SG_IO_HDR: Struct = Struct { name: "sg_io_hdr", size: 88, fields: &[
    Field{name:"interface_id",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"dxfer_direction",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"cmd_len",offset:8,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"mx_sb_len",offset:9,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"iovec_count",offset:10,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"dxfer_len",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"dxferp",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"cmdp",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"sbp",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"timeout",offset:40,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"flags",offset:44,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"status",offset:64,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"masked_status",offset:65,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"msg_status",offset:66,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"sb_len_wr",offset:67,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"host_status",offset:68,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"driver_status",offset:70,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"resid",offset:72,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"duration",offset:76,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"info",offset:80,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct pidfd_info`
pub static S_PIDFD_INFO: Struct = Struct { name: "pidfd_info", size: 72, fields: &[
    Field{name:"mask",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_PIDFD_INFO)}),verbose:false,cond:None},
    Field{name:"cgroupid",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"pid",offset:16,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),verbose:false,cond:None},
    Field{name:"tgid",offset:20,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),verbose:false,cond:None},
    Field{name:"ppid",offset:24,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),verbose:false,cond:None},
    Field{name:"ruid",offset:28,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),verbose:false,cond:None},
    Field{name:"rgid",offset:32,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),verbose:false,cond:None},
    Field{name:"euid",offset:36,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),verbose:false,cond:None},
    Field{name:"egid",offset:40,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),verbose:false,cond:None},
    Field{name:"suid",offset:44,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),verbose:false,cond:None},
    Field{name:"sgid",offset:48,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),verbose:false,cond:None},
    Field{name:"fsuid",offset:52,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),verbose:false,cond:None},
    Field{name:"fsgid",offset:56,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),verbose:false,cond:None},
    Field{name:"exit_code",offset:60,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"coredump_mask",offset:64,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:true,cond:None},
] };
/// `struct kcmp_epoll_slot`
pub static S_KCMP_EPOLL_SLOT: Struct = Struct { name: "kcmp_epoll_slot", size: 12, fields: &[
    Field{name:"efd",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"tfd",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"toff",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct uffdio_range`
pub static S_UFFDIO_RANGE: Struct = Struct { name: "uffdio_range", size: 16, fields: &[
    Field{name:"start",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"len",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct uffdio_api`
pub static S_UFFDIO_API: Struct = Struct { name: "uffdio_api", size: 24, fields: &[
    Field{name:"api",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"features",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_UFFD_FEATURE)}),verbose:false,cond:None},
    Field{name:"ioctls",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct uffdio_register`
pub static S_UFFDIO_REGISTER: Struct = Struct { name: "uffdio_register", size: 32, fields: &[
    Field{name:"range",offset:0,mem:Mem::Struct(&structs::S_UFFDIO_RANGE),verbose:false,cond:None},
    Field{name:"mode",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_UFFD_REGISTER_MODE)}),verbose:false,cond:None},
    Field{name:"ioctls",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct user_regs_struct`
pub static S_USER_REGS_STRUCT: Struct = Struct { name: "user_regs_struct", size: 216, fields: &[
    Field{name:"r15",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"r14",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"r13",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"r12",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"rbp",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"rbx",offset:40,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"r11",offset:48,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"r10",offset:56,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"r9",offset:64,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"r8",offset:72,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"rax",offset:80,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"rcx",offset:88,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"rdx",offset:96,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"rsi",offset:104,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"rdi",offset:112,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"orig_rax",offset:120,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"rip",offset:128,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"cs",offset:136,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"eflags",offset:144,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"rsp",offset:152,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"ss",offset:160,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"fs_base",offset:168,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"gs_base",offset:176,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"ds",offset:184,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"es",offset:192,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"fs",offset:200,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"gs",offset:208,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct user_fpregs_struct`
pub static S_USER_FPREGS_STRUCT: Struct = Struct { name: "user_fpregs_struct", size: 512, fields: &[
    Field{name:"cwd",offset:0,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"swd",offset:2,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"ftw",offset:4,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"fop",offset:6,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"rip",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"rdp",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"mxcsr",offset:24,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"mxcr_mask",offset:28,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"st_space",offset:32,mem:Mem::Array(&Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),32),verbose:false,cond:None},
    Field{name:"xmm_space",offset:160,mem:Mem::Array(&Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),64),verbose:false,cond:None},
    Field{name:"padding",offset:416,mem:Mem::Array(&Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),24),verbose:false,cond:None},
] };
/// `struct ptrace_peeksiginfo_args`
pub static S_PTRACE_PEEKSIGINFO_ARGS: Struct = Struct { name: "ptrace_peeksiginfo_args", size: 16, fields: &[
    Field{name:"off",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"flags",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_PTRACE_PEEKSIGINFO)}),verbose:false,cond:None},
    Field{name:"nr",offset:12,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct ptrace_syscall_info`
pub static S_PTRACE_SYSCALL_INFO: Struct = Struct { name: "ptrace_syscall_info", size: 88, fields: &[
    Field{name:"op",offset:0,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Enum(&flags::T_PTRACE_SYSCALL_INFO)}),verbose:false,cond:None},
    Field{name:"arch",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_AUDIT_ARCH)}),verbose:false,cond:None},
    Field{name:"instruction_pointer",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"stack_pointer",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"entry",offset:24,mem:Mem::Struct(&structs::S_PTRACE_SYSCALL_INFO_ENTRY),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[1])})},
    Field{name:"exit",offset:24,mem:Mem::Struct(&structs::S_PTRACE_SYSCALL_INFO_EXIT),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[2])})},
    Field{name:"seccomp",offset:24,mem:Mem::Struct(&structs::S_PTRACE_SYSCALL_INFO_SECCOMP),verbose:false,cond:Some(Cond{on:0,test:Test::OneOf(&[3])})},
] };
/// `struct ptrace_syscall_info_entry`
pub static S_PTRACE_SYSCALL_INFO_ENTRY: Struct = Struct { name: "ptrace_syscall_info_entry", size: 56, fields: &[
    Field{name:"nr",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"args",offset:8,mem:Mem::Array(&Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),6),verbose:false,cond:None},
] };
/// `struct ptrace_syscall_info_exit`
pub static S_PTRACE_SYSCALL_INFO_EXIT: Struct = Struct { name: "ptrace_syscall_info_exit", size: 16, fields: &[
    Field{name:"rval",offset:0,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"is_error",offset:8,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct ptrace_syscall_info_seccomp`
pub static S_PTRACE_SYSCALL_INFO_SECCOMP: Struct = Struct { name: "ptrace_syscall_info_seccomp", size: 64, fields: &[
    Field{name:"nr",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"args",offset:8,mem:Mem::Array(&Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),6),verbose:false,cond:None},
    Field{name:"ret_data",offset:56,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct seccomp_metadata`
pub static S_SECCOMP_METADATA: Struct = Struct { name: "seccomp_metadata", size: 16, fields: &[
    Field{name:"filter_off",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"flags",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_SECCOMP_FILTER)}),verbose:false,cond:None},
] };
/// `struct ptrace_rseq_configuration`
pub static S_PTRACE_RSEQ_CONFIGURATION: Struct = Struct { name: "ptrace_rseq_configuration", size: 24, fields: &[
    Field{name:"rseq_abi_pointer",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"rseq_abi_size",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"signature",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"flags",offset:16,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct ptrace_sud_config`
pub static S_PTRACE_SUD_CONFIG: Struct = Struct { name: "ptrace_sud_config", size: 32, fields: &[
    Field{name:"mode",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Enum(&flags::T_PR_SYSCALL_USER_DISPATCH)}),verbose:false,cond:None},
    Field{name:"selector",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"offset",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"len",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct keyctl_dh_params`
pub static S_KEYCTL_DH_PARAMS: Struct = Struct { name: "keyctl_dh_params", size: 12, fields: &[
    Field{name:"private",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"prime",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"base",offset:8,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct keyctl_kdf_params`
pub static S_KEYCTL_KDF_PARAMS: Struct = Struct { name: "keyctl_kdf_params", size: 56, fields: &[
    Field{name:"hashname",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"otherinfo",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"otherinfolen",offset:16,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct keyctl_pkey_query`
pub static S_KEYCTL_PKEY_QUERY: Struct = Struct { name: "keyctl_pkey_query", size: 56, fields: &[
    Field{name:"supported_ops",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_KEYCTL_PKEY_OPS)}),verbose:false,cond:None},
    Field{name:"key_size",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"max_data_size",offset:8,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"max_sig_size",offset:10,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"max_enc_size",offset:12,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"max_dec_size",offset:14,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct keyctl_pkey_params`
pub static S_KEYCTL_PKEY_PARAMS: Struct = Struct { name: "keyctl_pkey_params", size: 40, fields: &[
    Field{name:"key_id",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"in_len",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"out_len",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct keyctl_pkey_params_in2`
pub static S_KEYCTL_PKEY_PARAMS_IN2: Struct = Struct { name: "keyctl_pkey_params_in2", size: 40, fields: &[
    Field{name:"key_id",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"in_len",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"in2_len",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct prctl_mm_map`
pub static S_PRCTL_MM_MAP: Struct = Struct { name: "prctl_mm_map", size: 104, fields: &[
    Field{name:"start_code",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"end_code",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"start_data",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"end_data",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"start_brk",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"brk",offset:40,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"start_stack",offset:48,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"arg_start",offset:56,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"arg_end",offset:64,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"env_start",offset:72,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"env_end",offset:80,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"auxv",offset:88,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"auxv_size",offset:96,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"exe_fd",offset:100,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
] };
/// `struct bpf_map_create`
pub static S_BPF_MAP_CREATE: Struct = Struct { name: "bpf_map_create", size: 96, fields: &[
    Field{name:"map_type",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_BPF_MAP_TYPE)}),verbose:false,cond:None},
    Field{name:"key_size",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"value_size",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"max_entries",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"map_flags",offset:16,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_BPF_MAP_FLAGS)}),verbose:false,cond:None},
    Field{name:"inner_map_fd",offset:20,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"numa_node",offset:24,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:4,test:Test::Any(0x4)})},
    Field{name:"map_name",offset:28,mem:Mem::Chars(16),verbose:false,cond:None},
    Field{name:"map_ifindex",offset:44,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"btf_fd",offset:48,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"btf_key_type_id",offset:52,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"btf_value_type_id",offset:56,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"btf_vmlinux_value_type_id",offset:60,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"map_extra",offset:64,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:Some(Cond{on:13,test:Test::NoneOf(&[0])})},
    Field{name:"value_type_btf_obj_fd",offset:72,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:Some(Cond{on:14,test:Test::NoneOf(&[0])})},
    Field{name:"map_token_fd",offset:76,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:Some(Cond{on:15,test:Test::NoneOf(&[0])})},
    Field{name:"excl_prog_hash",offset:80,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:Some(Cond{on:16,test:Test::NoneOf(&[0])})},
    Field{name:"excl_prog_hash_size",offset:88,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:16,test:Test::NoneOf(&[0])})},
] };
/// `struct bpf_map_elem`
pub static S_BPF_MAP_ELEM: Struct = Struct { name: "bpf_map_elem", size: 32, fields: &[
    Field{name:"map_fd",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"key",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"value",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"flags",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_BPF_ELEM_FLAGS)}),verbose:false,cond:None},
] };
/// `struct bpf_map_delete_elem`
pub static S_BPF_MAP_DELETE_ELEM: Struct = Struct { name: "bpf_map_delete_elem", size: 16, fields: &[
    Field{name:"map_fd",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"key",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
] };
/// `struct bpf_map_next_key`
pub static S_BPF_MAP_NEXT_KEY: Struct = Struct { name: "bpf_map_next_key", size: 24, fields: &[
    Field{name:"map_fd",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"key",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"next_key",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
] };
/// `struct bpf_map_freeze`
pub static S_BPF_MAP_FREEZE: Struct = Struct { name: "bpf_map_freeze", size: 4, fields: &[
    Field{name:"map_fd",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
] };
/// `struct bpf_prog_load`
pub static S_BPF_PROG_LOAD: Struct = Struct { name: "bpf_prog_load", size: 168, fields: &[
    Field{name:"prog_type",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_BPF_PROG_TYPE)}),verbose:false,cond:None},
    Field{name:"insn_cnt",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"insns",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"license",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"log_level",offset:24,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"log_size",offset:28,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"log_buf",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"kern_version",offset:40,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"prog_flags",offset:44,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_BPF_PROG_FLAGS)}),verbose:false,cond:None},
    Field{name:"prog_name",offset:48,mem:Mem::Chars(16),verbose:false,cond:None},
    Field{name:"prog_ifindex",offset:64,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:10,test:Test::NoneOf(&[0])})},
    Field{name:"expected_attach_type",offset:68,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_BPF_ATTACH_TYPE)}),verbose:false,cond:Some(Cond{on:11,test:Test::NoneOf(&[0])})},
    Field{name:"prog_btf_fd",offset:72,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:Some(Cond{on:12,test:Test::NoneOf(&[0])})},
    Field{name:"func_info_rec_size",offset:76,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:15,test:Test::NoneOf(&[0])})},
    Field{name:"func_info",offset:80,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:Some(Cond{on:15,test:Test::NoneOf(&[0])})},
    Field{name:"func_info_cnt",offset:88,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:15,test:Test::NoneOf(&[0])})},
    Field{name:"line_info_rec_size",offset:92,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:18,test:Test::NoneOf(&[0])})},
    Field{name:"line_info",offset:96,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:Some(Cond{on:18,test:Test::NoneOf(&[0])})},
    Field{name:"line_info_cnt",offset:104,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:18,test:Test::NoneOf(&[0])})},
    Field{name:"attach_btf_id",offset:108,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:19,test:Test::NoneOf(&[0])})},
    Field{name:"attach_prog_fd",offset:112,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:Some(Cond{on:20,test:Test::NoneOf(&[0])})},
    Field{name:"core_relo_cnt",offset:116,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:21,test:Test::NoneOf(&[0])})},
    Field{name:"fd_array",offset:120,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:Some(Cond{on:22,test:Test::NoneOf(&[0])})},
    Field{name:"core_relos",offset:128,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:Some(Cond{on:21,test:Test::NoneOf(&[0])})},
    Field{name:"core_relo_rec_size",offset:136,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:21,test:Test::NoneOf(&[0])})},
    Field{name:"log_true_size",offset:140,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:25,test:Test::NoneOf(&[0])})},
    Field{name:"prog_token_fd",offset:144,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:Some(Cond{on:26,test:Test::NoneOf(&[0])})},
    Field{name:"fd_array_cnt",offset:148,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:27,test:Test::NoneOf(&[0])})},
    Field{name:"signature",offset:152,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:Some(Cond{on:28,test:Test::NoneOf(&[0])})},
    Field{name:"signature_size",offset:160,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:28,test:Test::NoneOf(&[0])})},
    Field{name:"keyring_id",offset:164,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:28,test:Test::NoneOf(&[0])})},
] };
/// `struct bpf_obj`
pub static S_BPF_OBJ: Struct = Struct { name: "bpf_obj", size: 24, fields: &[
    Field{name:"pathname",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"bpf_fd",offset:8,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"file_flags",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_BPF_MAP_FLAGS)}),verbose:false,cond:None},
    Field{name:"path_fd",offset:16,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),verbose:false,cond:Some(Cond{on:3,test:Test::NoneOf(&[0])})},
] };
/// `struct bpf_prog_attach`
pub static S_BPF_PROG_ATTACH: Struct = Struct { name: "bpf_prog_attach", size: 32, fields: &[
    Field{name:"target_fd",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"attach_bpf_fd",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"attach_type",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_BPF_ATTACH_TYPE)}),verbose:false,cond:None},
    Field{name:"attach_flags",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_BPF_ATTACH_FLAGS)}),verbose:false,cond:None},
    Field{name:"replace_bpf_fd",offset:16,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"relative_fd",offset:20,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:Some(Cond{on:5,test:Test::NoneOf(&[0])})},
    Field{name:"expected_revision",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:6,test:Test::NoneOf(&[0])})},
] };
/// `struct bpf_prog_detach`
pub static S_BPF_PROG_DETACH: Struct = Struct { name: "bpf_prog_detach", size: 16, fields: &[
    Field{name:"target_fd",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"attach_type",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_BPF_ATTACH_TYPE)}),verbose:false,cond:None},
] };
/// `struct bpf_test_run_inner`
pub static S_BPF_TEST_RUN_INNER: Struct = Struct { name: "bpf_test_run_inner", size: 80, fields: &[
    Field{name:"prog_fd",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"retval",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"data_size_in",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"data_size_out",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"data_in",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"data_out",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"repeat",offset:32,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"duration",offset:36,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"ctx_size_in",offset:40,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"ctx_size_out",offset:44,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"ctx_in",offset:48,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"ctx_out",offset:56,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"flags",offset:64,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_BPF_TEST_RUN_FLAGS)}),verbose:false,cond:Some(Cond{on:12,test:Test::NoneOf(&[0])})},
    Field{name:"cpu",offset:68,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:13,test:Test::NoneOf(&[0])})},
    Field{name:"batch_size",offset:72,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:14,test:Test::NoneOf(&[0])})},
] };
/// `struct bpf_test_run`
pub static S_BPF_TEST_RUN: Struct = Struct { name: "bpf_test_run", size: 80, fields: &[
    Field{name:"test",offset:0,mem:Mem::Struct(&structs::S_BPF_TEST_RUN_INNER),verbose:false,cond:None},
] };
/// `struct bpf_get_next_id`
pub static S_BPF_GET_NEXT_ID: Struct = Struct { name: "bpf_get_next_id", size: 16, fields: &[
    Field{name:"start_id",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"next_id",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"open_flags",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_BPF_MAP_FLAGS)}),verbose:false,cond:None},
] };
/// `struct bpf_prog_get_fd`
pub static S_BPF_PROG_GET_FD: Struct = Struct { name: "bpf_prog_get_fd", size: 16, fields: &[
    Field{name:"prog_id",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"next_id",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"open_flags",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_BPF_MAP_FLAGS)}),verbose:false,cond:None},
] };
/// `struct bpf_map_get_fd`
pub static S_BPF_MAP_GET_FD: Struct = Struct { name: "bpf_map_get_fd", size: 16, fields: &[
    Field{name:"map_id",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"next_id",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"open_flags",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_BPF_MAP_FLAGS)}),verbose:false,cond:None},
] };
/// `struct bpf_btf_get_fd`
pub static S_BPF_BTF_GET_FD: Struct = Struct { name: "bpf_btf_get_fd", size: 4, fields: &[
    Field{name:"btf_id",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct bpf_link_get_fd`
pub static S_BPF_LINK_GET_FD: Struct = Struct { name: "bpf_link_get_fd", size: 4, fields: &[
    Field{name:"link_id",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct bpf_info_inner`
pub static S_BPF_INFO_INNER: Struct = Struct { name: "bpf_info_inner", size: 16, fields: &[
    Field{name:"bpf_fd",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"info_len",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"info",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
] };
/// `struct bpf_info`
pub static S_BPF_INFO: Struct = Struct { name: "bpf_info", size: 16, fields: &[
    Field{name:"info",offset:0,mem:Mem::Struct(&structs::S_BPF_INFO_INNER),verbose:false,cond:None},
] };
/// `struct bpf_prog_query_inner`
pub static S_BPF_PROG_QUERY_INNER: Struct = Struct { name: "bpf_prog_query_inner", size: 64, fields: &[
    Field{name:"target_fd",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"attach_type",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_BPF_ATTACH_TYPE)}),verbose:false,cond:None},
    Field{name:"query_flags",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_BPF_QUERY_FLAGS)}),verbose:false,cond:None},
    Field{name:"attach_flags",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_BPF_ATTACH_FLAGS)}),verbose:false,cond:None},
    Field{name:"prog_ids",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"prog_cnt",offset:24,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"prog_attach_flags",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:Some(Cond{on:6,test:Test::NoneOf(&[0])})},
    Field{name:"link_ids",offset:40,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:Some(Cond{on:7,test:Test::NoneOf(&[0])})},
    Field{name:"link_attach_flags",offset:48,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:Some(Cond{on:8,test:Test::NoneOf(&[0])})},
    Field{name:"revision",offset:56,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:9,test:Test::NoneOf(&[0])})},
] };
/// `struct bpf_prog_query`
pub static S_BPF_PROG_QUERY: Struct = Struct { name: "bpf_prog_query", size: 64, fields: &[
    Field{name:"query",offset:0,mem:Mem::Struct(&structs::S_BPF_PROG_QUERY_INNER),verbose:false,cond:None},
] };
/// `struct bpf_raw_tracepoint_inner`
pub static S_BPF_RAW_TRACEPOINT_INNER: Struct = Struct { name: "bpf_raw_tracepoint_inner", size: 24, fields: &[
    Field{name:"name",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"prog_fd",offset:8,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"cookie",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:Some(Cond{on:2,test:Test::NoneOf(&[0])})},
] };
/// `struct bpf_raw_tracepoint`
pub static S_BPF_RAW_TRACEPOINT: Struct = Struct { name: "bpf_raw_tracepoint", size: 24, fields: &[
    Field{name:"raw_tracepoint",offset:0,mem:Mem::Struct(&structs::S_BPF_RAW_TRACEPOINT_INNER),verbose:false,cond:None},
] };
/// `struct bpf_btf_load`
pub static S_BPF_BTF_LOAD: Struct = Struct { name: "bpf_btf_load", size: 40, fields: &[
    Field{name:"btf",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"btf_log_buf",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"btf_size",offset:16,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"btf_log_size",offset:20,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"btf_log_level",offset:24,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"btf_log_true_size",offset:28,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:Some(Cond{on:5,test:Test::NoneOf(&[0])})},
    Field{name:"btf_flags",offset:32,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_BPF_MAP_FLAGS)}),verbose:false,cond:Some(Cond{on:6,test:Test::NoneOf(&[0])})},
    Field{name:"btf_token_fd",offset:36,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:Some(Cond{on:7,test:Test::NoneOf(&[0])})},
] };
/// `struct bpf_task_fd_query_inner`
pub static S_BPF_TASK_FD_QUERY_INNER: Struct = Struct { name: "bpf_task_fd_query_inner", size: 48, fields: &[
    Field{name:"pid",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),verbose:false,cond:None},
    Field{name:"fd",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"flags",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"buf_len",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"buf",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"prog_id",offset:24,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"fd_type",offset:28,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_BPF_FD_TYPE)}),verbose:false,cond:None},
    Field{name:"probe_offset",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"probe_addr",offset:40,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct bpf_task_fd_query`
pub static S_BPF_TASK_FD_QUERY: Struct = Struct { name: "bpf_task_fd_query", size: 48, fields: &[
    Field{name:"task_fd_query",offset:0,mem:Mem::Struct(&structs::S_BPF_TASK_FD_QUERY_INNER),verbose:false,cond:None},
] };
/// `struct bpf_batch_inner`
pub static S_BPF_BATCH_INNER: Struct = Struct { name: "bpf_batch_inner", size: 56, fields: &[
    Field{name:"in_batch",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"out_batch",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"keys",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"values",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"count",offset:32,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"map_fd",offset:36,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"elem_flags",offset:40,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_BPF_ELEM_FLAGS)}),verbose:false,cond:None},
    Field{name:"flags",offset:48,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct bpf_batch`
pub static S_BPF_BATCH: Struct = Struct { name: "bpf_batch", size: 56, fields: &[
    Field{name:"batch",offset:0,mem:Mem::Struct(&structs::S_BPF_BATCH_INNER),verbose:false,cond:None},
] };
/// `struct bpf_batch_update_inner`
pub static S_BPF_BATCH_UPDATE_INNER: Struct = Struct { name: "bpf_batch_update_inner", size: 56, fields: &[
    Field{name:"keys",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"values",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"count",offset:32,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"map_fd",offset:36,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"elem_flags",offset:40,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_BPF_ELEM_FLAGS)}),verbose:false,cond:None},
    Field{name:"flags",offset:48,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct bpf_batch_update`
pub static S_BPF_BATCH_UPDATE: Struct = Struct { name: "bpf_batch_update", size: 56, fields: &[
    Field{name:"batch",offset:0,mem:Mem::Struct(&structs::S_BPF_BATCH_UPDATE_INNER),verbose:false,cond:None},
] };
/// `struct bpf_batch_delete_inner`
pub static S_BPF_BATCH_DELETE_INNER: Struct = Struct { name: "bpf_batch_delete_inner", size: 56, fields: &[
    Field{name:"keys",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"count",offset:32,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"map_fd",offset:36,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"elem_flags",offset:40,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_BPF_ELEM_FLAGS)}),verbose:false,cond:None},
    Field{name:"flags",offset:48,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct bpf_batch_delete`
pub static S_BPF_BATCH_DELETE: Struct = Struct { name: "bpf_batch_delete", size: 56, fields: &[
    Field{name:"batch",offset:0,mem:Mem::Struct(&structs::S_BPF_BATCH_DELETE_INNER),verbose:false,cond:None},
] };
/// `struct bpf_link_create_inner`
pub static S_BPF_LINK_CREATE_INNER: Struct = Struct { name: "bpf_link_create_inner", size: 64, fields: &[
    Field{name:"prog_fd",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"target_fd",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"attach_type",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_BPF_ATTACH_TYPE)}),verbose:false,cond:None},
    Field{name:"flags",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct bpf_link_create`
pub static S_BPF_LINK_CREATE: Struct = Struct { name: "bpf_link_create", size: 64, fields: &[
    Field{name:"link_create",offset:0,mem:Mem::Struct(&structs::S_BPF_LINK_CREATE_INNER),verbose:false,cond:None},
] };
/// `struct bpf_link_update_inner`
pub static S_BPF_LINK_UPDATE_INNER: Struct = Struct { name: "bpf_link_update_inner", size: 16, fields: &[
    Field{name:"link_fd",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"new_prog_fd",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"flags",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_BPF_ATTACH_FLAGS)}),verbose:false,cond:None},
    Field{name:"old_prog_fd",offset:12,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:Some(Cond{on:2,test:Test::Any(0x4)})},
] };
/// `struct bpf_link_update`
pub static S_BPF_LINK_UPDATE: Struct = Struct { name: "bpf_link_update", size: 16, fields: &[
    Field{name:"link_update",offset:0,mem:Mem::Struct(&structs::S_BPF_LINK_UPDATE_INNER),verbose:false,cond:None},
] };
/// `struct bpf_link_detach_inner`
pub static S_BPF_LINK_DETACH_INNER: Struct = Struct { name: "bpf_link_detach_inner", size: 4, fields: &[
    Field{name:"link_fd",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
] };
/// `struct bpf_link_detach`
pub static S_BPF_LINK_DETACH: Struct = Struct { name: "bpf_link_detach", size: 4, fields: &[
    Field{name:"link_detach",offset:0,mem:Mem::Struct(&structs::S_BPF_LINK_DETACH_INNER),verbose:false,cond:None},
] };
/// `struct bpf_enable_stats_inner`
pub static S_BPF_ENABLE_STATS_INNER: Struct = Struct { name: "bpf_enable_stats_inner", size: 4, fields: &[
    Field{name:"type",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_BPF_STATS_TYPE)}),verbose:false,cond:None},
] };
/// `struct bpf_enable_stats`
pub static S_BPF_ENABLE_STATS: Struct = Struct { name: "bpf_enable_stats", size: 4, fields: &[
    Field{name:"enable_stats",offset:0,mem:Mem::Struct(&structs::S_BPF_ENABLE_STATS_INNER),verbose:false,cond:None},
] };
/// `struct bpf_iter_create_inner`
pub static S_BPF_ITER_CREATE_INNER: Struct = Struct { name: "bpf_iter_create_inner", size: 8, fields: &[
    Field{name:"link_fd",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"flags",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct bpf_iter_create`
pub static S_BPF_ITER_CREATE: Struct = Struct { name: "bpf_iter_create", size: 8, fields: &[
    Field{name:"iter_create",offset:0,mem:Mem::Struct(&structs::S_BPF_ITER_CREATE_INNER),verbose:false,cond:None},
] };
/// `struct bpf_prog_bind_map_inner`
pub static S_BPF_PROG_BIND_MAP_INNER: Struct = Struct { name: "bpf_prog_bind_map_inner", size: 12, fields: &[
    Field{name:"prog_fd",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"map_fd",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"flags",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct bpf_prog_bind_map`
pub static S_BPF_PROG_BIND_MAP: Struct = Struct { name: "bpf_prog_bind_map", size: 16, fields: &[
    Field{name:"prog_bind_map",offset:0,mem:Mem::Struct(&structs::S_BPF_PROG_BIND_MAP_INNER),verbose:false,cond:None},
] };
/// `struct bpf_token_create_inner`
pub static S_BPF_TOKEN_CREATE_INNER: Struct = Struct { name: "bpf_token_create_inner", size: 8, fields: &[
    Field{name:"flags",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"bpffs_fd",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
] };
/// `struct bpf_token_create`
pub static S_BPF_TOKEN_CREATE: Struct = Struct { name: "bpf_token_create", size: 8, fields: &[
    Field{name:"token_create",offset:0,mem:Mem::Struct(&structs::S_BPF_TOKEN_CREATE_INNER),verbose:false,cond:None},
] };
/// `struct bpf_prog_stream_inner`
pub static S_BPF_PROG_STREAM_INNER: Struct = Struct { name: "bpf_prog_stream_inner", size: 24, fields: &[
    Field{name:"stream_buf",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"stream_buf_len",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"stream_id",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"prog_fd",offset:16,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
] };
/// `struct bpf_prog_stream`
pub static S_BPF_PROG_STREAM: Struct = Struct { name: "bpf_prog_stream", size: 24, fields: &[
    Field{name:"prog_stream_read",offset:0,mem:Mem::Struct(&structs::S_BPF_PROG_STREAM_INNER),verbose:false,cond:None},
] };
/// `struct kbkeycode`
pub static S_KBKEYCODE: Struct = Struct { name: "kbkeycode", size: 8, fields: &[
    Field{name:"scancode",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"keycode",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct kbentry`
pub static S_KBENTRY: Struct = Struct { name: "kbentry", size: 4, fields: &[
    Field{name:"kb_table",offset:0,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Enum(&flags::T_KD_KBTABLE)}),verbose:false,cond:None},
    Field{name:"kb_index",offset:1,mem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"kb_value",offset:2,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct kbd_repeat`
pub static S_KBD_REPEAT: Struct = Struct { name: "kbd_repeat", size: 8, fields: &[
    Field{name:"delay",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"period",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct unimapinit`
pub static S_UNIMAPINIT: Struct = Struct { name: "unimapinit", size: 6, fields: &[
    Field{name:"advised_hashsize",offset:0,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"advised_hashstep",offset:2,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"advised_hashlevel",offset:4,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct unimapdesc`
pub static S_UNIMAPDESC: Struct = Struct { name: "unimapdesc", size: 16, fields: &[
    Field{name:"entry_ct",offset:0,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"entries",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
] };
/// `struct consolefontdesc`
pub static S_CONSOLEFONTDESC: Struct = Struct { name: "consolefontdesc", size: 16, fields: &[
    Field{name:"charcount",offset:0,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"charheight",offset:2,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"chardata",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
] };
/// `struct procmap_query`
pub static S_PROCMAP_QUERY: Struct = Struct { name: "procmap_query", size: 104, fields: &[
    Field{name:"size",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"query_flags",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"query_addr",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"vma_start",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"vma_end",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"vma_flags",offset:40,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"vma_page_size",offset:48,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"vma_offset",offset:56,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"inode",offset:64,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"dev_major",offset:72,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"dev_minor",offset:76,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"vma_name_size",offset:80,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"build_id_size",offset:84,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"vma_name_addr",offset:88,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"build_id_addr",offset:96,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
] };
/// `struct blkpg_ioctl_arg`
pub static S_BLKPG_IOCTL_ARG: Struct = Struct { name: "blkpg_ioctl_arg", size: 24, fields: &[
    Field{name:"op",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_BLKPG_OP)}),verbose:false,cond:None},
    Field{name:"flags",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"datalen",offset:8,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"data",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
] };
/// `struct blk_user_trace_setup`
pub static S_BLK_USER_TRACE_SETUP: Struct = Struct { name: "blk_user_trace_setup", size: 72, fields: &[
    Field{name:"act_mask",offset:32,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"buf_size",offset:36,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"buf_nr",offset:40,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"start_lba",offset:48,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"end_lba",offset:56,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"pid",offset:64,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"name",offset:0,mem:Mem::Chars(32),verbose:false,cond:None},
] };
/// `struct loop_info`
pub static S_LOOP_INFO: Struct = Struct { name: "loop_info", size: 168, fields: &[
    Field{name:"lo_number",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"lo_device",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dev}),verbose:true,cond:None},
    Field{name:"lo_inode",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"lo_rdevice",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dev}),verbose:true,cond:None},
    Field{name:"lo_offset",offset:32,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"lo_encrypt_type",offset:36,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_LO_CRYPT)}),verbose:true,cond:None},
    Field{name:"lo_encrypt_key_size",offset:40,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:true,cond:None},
    Field{name:"lo_flags",offset:44,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_LOOP_FLAGS)}),verbose:false,cond:None},
    Field{name:"lo_name",offset:48,mem:Mem::Chars(64),verbose:false,cond:None},
    Field{name:"lo_encrypt_key",offset:112,mem:Mem::Bytes(32),verbose:true,cond:None},
    Field{name:"lo_init",offset:144,mem:Mem::Array(&Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),2),verbose:true,cond:None},
] };
/// `struct sg_scsi_id`
pub static S_SG_SCSI_ID: Struct = Struct { name: "sg_scsi_id", size: 32, fields: &[
    Field{name:"host_no",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"channel",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"scsi_id",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"lun",offset:12,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"scsi_type",offset:16,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"h_cmd_per_lun",offset:20,mem:Mem::Int(Int{size:2,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"d_queue_depth",offset:22,mem:Mem::Int(Int{size:2,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct sg_req_info`
pub static S_SG_REQ_INFO: Struct = Struct { name: "sg_req_info", size: 24, fields: &[
    Field{name:"req_state",offset:0,mem:Mem::Int(Int{size:1,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"orphan",offset:1,mem:Mem::Int(Int{size:1,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"sg_io_owned",offset:2,mem:Mem::Int(Int{size:1,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"problem",offset:3,mem:Mem::Int(Int{size:1,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"pack_id",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"usr_ptr",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"duration",offset:16,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct ifreq_brif`
pub static S_IFREQ_BRIF: Struct = Struct { name: "ifreq_brif", size: 40, fields: &[
    Field{name:"ifr_ifindex",offset:16,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct rtc_pll_info`
pub static S_RTC_PLL_INFO: Struct = Struct { name: "rtc_pll_info", size: 32, fields: &[
    Field{name:"pll_ctrl",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"pll_value",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"pll_max",offset:8,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"pll_min",offset:12,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"pll_posmult",offset:16,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"pll_negmult",offset:20,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"pll_clock",offset:24,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct perf_event_query_bpf`
pub static S_PERF_EVENT_QUERY_BPF: Struct = Struct { name: "perf_event_query_bpf", size: 8, fields: &[
    Field{name:"ids_len",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"prog_cnt",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct seccomp_notif_addfd`
pub static S_SECCOMP_NOTIF_ADDFD: Struct = Struct { name: "seccomp_notif_addfd", size: 24, fields: &[
    Field{name:"id",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"flags",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_ADDFD_FLAGS)}),verbose:false,cond:None},
    Field{name:"srcfd",offset:12,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"newfd",offset:16,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"newfd_flags",offset:20,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_ADDFD_NEWFD)}),verbose:false,cond:None},
] };
/// `struct uffdio_copy`
pub static S_UFFDIO_COPY: Struct = Struct { name: "uffdio_copy", size: 40, fields: &[
    Field{name:"dst",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"src",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"len",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"mode",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_UFFD_COPY_MODE)}),verbose:false,cond:None},
    Field{name:"copy",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct uffdio_zeropage`
pub static S_UFFDIO_ZEROPAGE: Struct = Struct { name: "uffdio_zeropage", size: 32, fields: &[
    Field{name:"range",offset:0,mem:Mem::Struct(&structs::S_UFFDIO_RANGE),verbose:false,cond:None},
    Field{name:"mode",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_UFFD_ZEROPAGE_MODE)}),verbose:false,cond:None},
    Field{name:"zeropage",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct uffdio_move`
pub static S_UFFDIO_MOVE: Struct = Struct { name: "uffdio_move", size: 40, fields: &[
    Field{name:"dst",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"src",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"len",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"mode",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"move",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct uffdio_poison`
pub static S_UFFDIO_POISON: Struct = Struct { name: "uffdio_poison", size: 32, fields: &[
    Field{name:"range",offset:0,mem:Mem::Struct(&structs::S_UFFDIO_RANGE),verbose:false,cond:None},
    Field{name:"mode",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"updated",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct mnt_ns_info`
pub static S_MNT_NS_INFO: Struct = Struct { name: "mnt_ns_info", size: 16, fields: &[
    Field{name:"size",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"nr_mounts",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"mnt_ns_id",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct kvm_userspace_memory_region`
pub static S_KVM_USERSPACE_MEMORY_REGION: Struct = Struct { name: "kvm_userspace_memory_region", size: 32, fields: &[
    Field{name:"slot",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"flags",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_KVM_MEM)}),verbose:false,cond:None},
    Field{name:"guest_phys_addr",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"memory_size",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"userspace_addr",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct input_id`
pub static S_INPUT_ID: Struct = Struct { name: "input_id", size: 8, fields: &[
    Field{name:"bustype",offset:0,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"vendor",offset:2,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"product",offset:4,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"version",offset:6,mem:Mem::Int(Int{size:2,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct v4l2_requestbuffers`
pub static S_V4L2_REQUESTBUFFERS: Struct = Struct { name: "v4l2_requestbuffers", size: 20, fields: &[
    Field{name:"type",offset:4,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_V4L2_BUF_TYPE)}),verbose:false,cond:None},
    Field{name:"memory",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_V4L2_MEMORY)}),verbose:false,cond:None},
    Field{name:"count",offset:0,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct v4l2_capability`
pub static S_V4L2_CAPABILITY: Struct = Struct { name: "v4l2_capability", size: 104, fields: &[
    Field{name:"driver",offset:0,mem:Mem::Chars(16),verbose:false,cond:None},
    Field{name:"card",offset:16,mem:Mem::Chars(32),verbose:false,cond:None},
    Field{name:"bus_info",offset:48,mem:Mem::Chars(32),verbose:false,cond:None},
    Field{name:"version",offset:80,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"capabilities",offset:84,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"device_caps",offset:88,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
] };
/// `struct btrfs_ioctl_vol_args`
pub static S_BTRFS_IOCTL_VOL_ARGS: Struct = Struct { name: "btrfs_ioctl_vol_args", size: 4096, fields: &[
    Field{name:"fd",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),verbose:false,cond:None},
    Field{name:"name",offset:8,mem:Mem::Chars(4088),verbose:false,cond:None},
] };
/// `struct btrfs_ioctl_qgroup_create_args`
pub static S_BTRFS_IOCTL_QGROUP_CREATE_ARGS: Struct = Struct { name: "btrfs_ioctl_qgroup_create_args", size: 16, fields: &[
    Field{name:"create",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"qgroupid",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct btrfs_ioctl_qgroup_assign_args`
pub static S_BTRFS_IOCTL_QGROUP_ASSIGN_ARGS: Struct = Struct { name: "btrfs_ioctl_qgroup_assign_args", size: 24, fields: &[
    Field{name:"assign",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"src",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"dst",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct rand_pool_info`
pub static S_RAND_POOL_INFO: Struct = Struct { name: "rand_pool_info", size: 8, fields: &[
    Field{name:"entropy_count",offset:0,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"buf_size",offset:4,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct sysctl_args`
pub static S_SYSCTL_ARGS: Struct = Struct { name: "sysctl_args", size: 80, fields: &[
    Field{name:"name",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"nlen",offset:8,mem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"oldval",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"oldlenp",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"newval",offset:32,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"newlen",offset:40,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct msgbuf`
pub static S_MSGBUF: Struct = Struct { name: "msgbuf", size: 8, fields: &[
    Field{name:"mtype",offset:0,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct kexec_segment`
pub static S_KEXEC_SEGMENT: Struct = Struct { name: "kexec_segment", size: 32, fields: &[
    Field{name:"buf",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"bufsz",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"mem",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"memsz",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct lsm_ctx`
pub static S_LSM_CTX: Struct = Struct { name: "lsm_ctx", size: 32, fields: &[
    Field{name:"id",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Enum(&flags::T_LSM_ID)}),verbose:false,cond:None},
    Field{name:"flags",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),verbose:false,cond:None},
    Field{name:"len",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"ctx_len",offset:24,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct xattr_args`
pub static S_XATTR_ARGS: Struct = Struct { name: "xattr_args", size: 16, fields: &[
    Field{name:"value",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"size",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"flags",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_XATTR)}),verbose:false,cond:None},
] };
/// `struct file_attr`
pub static S_FILE_ATTR: Struct = Struct { name: "file_attr", size: 24, fields: &[
    Field{name:"fa_xflags",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_FS_XFLAGS)}),verbose:false,cond:None},
    Field{name:"fa_extsize",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"fa_nextents",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"fa_projid",offset:16,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"fa_cowextsize",offset:20,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct io_uring_getevents_arg`
pub static S_IO_URING_GETEVENTS_ARG: Struct = Struct { name: "io_uring_getevents_arg", size: 24, fields: &[
    Field{name:"sigmask",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
    Field{name:"sigmask_sz",offset:8,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"min_wait_usec",offset:12,mem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
    Field{name:"ts",offset:16,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),verbose:false,cond:None},
] };
/// `struct landlock_net_port_attr`
pub static S_LANDLOCK_NET_PORT_ATTR: Struct = Struct { name: "landlock_net_port_attr", size: 16, fields: &[
    Field{name:"allowed_access",offset:0,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_LANDLOCK_ACCESS_NET)}),verbose:false,cond:None},
    Field{name:"port",offset:8,mem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
/// `struct utimespec`
pub static S_UTIMESPEC: Struct = Struct { name: "utimespec", size: 16, fields: &[
    Field{name:"tv_sec",offset:0,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),verbose:false,cond:None},
    Field{name:"tv_nsec",offset:8,mem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),verbose:false,cond:None},
] };
